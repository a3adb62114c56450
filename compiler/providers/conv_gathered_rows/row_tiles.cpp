#include "compiler/providers/conv_gathered_rows/row_tiles.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "compiler/launch_time.h"
#include "ir/kernel.h"
#include "ir/limits.h"

namespace burin {
namespace {

constexpr int kOctetPairs = 4, kFourCols = 4, kItemsAtOnce = 4;
constexpr int kMaxFilterCols = 7, kMaxSpan = 16;  // as the template has them
constexpr int kMostWarpOctets = 14, kMostWarpTiles = 4, kMostSplitWarps = 16;
constexpr int kMostBlockThreads = 512, kMostSteps = 1024, kMostChannelPitch = 16384;

int registers(const RowTiles& tiles) {
  // A step's octets, and addresses; in TF32 those of four columns, and of four of the next step.
  const int others = tiles.factors == FactorType::tf32 ? 54 : 48;
  return step_registers(tiles.warp_tiles, tiles.warp_octets, tiles.sparse != 0, others);
}

int resident_blocks(const RowTiles& tiles, const ConvShape& shape, int step_limit, const ArchSpec& arch) {
  return resident_blocks(tiles.shared_bytes(shape, step_limit), registers(tiles), tiles.warps() * kWarpSize, arch);
}

// The steps that the weights of a row group take, in a split of the input channels.
int estimate_steps(const RowTiles& tiles, const ConvShape& shape, const LiveColumns& columns) {
  constexpr double kUneven = 0.3;  // of a step, by which splits have more than their share
  const Packing packing = tiles.packing(shape);
  const double live = multiplied_columns(columns, packing) * tiles.split_channels(shape) / shape.channels_per_group();
  return static_cast<int>(std::ceil(live / packing.step_columns() + (tiles.cluster > 1 ? kUneven : 0)));
}

// The share of the input channels that are zero all over a tile.
double dead_share(const RowTiles& tiles, const ConvShape& shape, const RowColumns& columns) {
  if (tiles.skip_dead == 0 || !columns.zeros) return 0;
  const int cols =
      (tiles.tile_octets * kOctetOutputs - 1) * shape.stride_w + (shape.kernel_w - 1) * shape.dilation_w + 1;
  const auto values = std::int64_t{std::min(tiles.patch_rows(shape), shape.in_h)} * std::min(cols, shape.in_w);
  return columns.zeros->dead_patches(values, std::int64_t{shape.in_h} * shape.in_w);
}

class RowSearch {
 public:
  RowSearch(const ConvShape& shape, const RowColumns& columns, FactorType factors, int batch, const ArchSpec& arch)
      : shape_(shape), columns_(columns), batch_(batch), arch_(arch), tiles_{.factors = factors} {}

  std::vector<RowTiles> run() {
    for (const int tiles : {1, 2, 4}) {
      for (const int warps : {1, 2, 4}) {
        tiles_.warp_tiles = tiles;
        tiles_.row_warps = warps;
        const std::int64_t rows = ceil_div(shape_.outputs_per_group(), kTileRows) * kTileRows;
        if (tiles_.block_rows() > kTileRows && tiles_.block_rows() / 2 >= rows) continue;
        for (const auto& [sparse, skip_dead] : {std::pair{0, 0}, std::pair{1, 0}, std::pair{0, 1}}) {
          if (skip_dead != 0 && !columns_.zeros) continue;
          tiles_.sparse = sparse;
          tiles_.skip_dead = skip_dead;
          for (const int cluster : {1, 2, 4, 8}) {
            if (cluster > 1 && (!arch_.clusters || shape_.channels_per_group() < cluster * kTileRows)) continue;
            tiles_.cluster = cluster;
            try_octets();
          }
        }
      }
    }
    std::vector<Found> found;
    for (const auto& [kind, best] : best_) found.push_back(best);
    std::ranges::stable_sort(found, {}, &Found::us);
    std::vector<RowTiles> result;
    for (const Found& each : found) result.push_back(each.tiles);
    return result;
  }

 private:
  struct Found {
    RowTiles tiles;
    double us = 0;
  };

  void try_octets() {
    // What all windows read: with padding that may be more than there is.
    const Pool pool = shape_.epilogue.pool.value_or(Pool{});
    const WindowTile all_windows = WindowTile::all_of(shape_);
    const std::int64_t across = ceil_div(all_windows.pixel_cols(pool), kOctetOutputs);
    const std::int64_t down = all_windows.pixel_rows(pool);
    for (int octets = 1; octets <= kMostWarpOctets; ++octets) {
      for (const int warps : {1, 2, 3, 4, 6, 7, 8}) {
        tiles_.warp_octets = octets;
        tiles_.octet_warps = warps;
        const int all = octets * warps;
        for (int cols = 1; cols <= all; ++cols) {
          if (all % cols != 0 || (cols % octets != 0 && octets % cols != 0)) continue;
          const int rows = all / cols;
          // Half of it would do.
          if ((cols > 1 && cols / 2 >= across) || (rows > 1 && rows / 2 >= down)) continue;
          tiles_.tile_rows = rows;
          tiles_.tile_octets = cols;
          for (const int splits : {1, 2, 4, 8, kMostSplitWarps}) {
            tiles_.split_warps = splits;
            consider();
          }
        }
      }
    }
  }

  void consider() {
    if (!fits(tiles_, shape_, estimate_steps(tiles_, shape_, columns_.weights), arch_)) return;
    const double us = predict(tiles_, shape_, columns_, batch_, arch_);
    const std::array<int, 6> kind = {tiles_.warp_tiles, tiles_.row_warps, tiles_.split_warps,
                                     tiles_.sparse,     tiles_.skip_dead, tiles_.cluster};
    const auto [place, is_new] = best_.try_emplace(kind);
    if (is_new || us < place->second.us) place->second = {tiles_, us};
  }

  const ConvShape& shape_;
  const RowColumns& columns_;
  int batch_;
  const ArchSpec& arch_;
  RowTiles tiles_;
  // A kind has its tiles and warps of rows, its splits, whether it is sparse or skips dead channels, and its cluster.
  std::map<std::array<int, 6>, Found> best_;
};

}  // namespace

int RowTiles::patch_rows(const ConvShape& shape) const {
  if (shape.kernel_h == 1) return tile_rows;
  return (tile_rows - 1) * shape.stride_h + (shape.kernel_h - 1) * shape.dilation_h + 1;
}

WindowTile RowTiles::windows(const ConvShape& shape) const {
  const Pool pool = shape.epilogue.pool.value_or(Pool{});
  const int cols = tile_octets * kOctetOutputs;
  if (tile_rows < pool.kernel_h || cols < pool.kernel_w) return {.rows = 0, .cols = 0};
  return {.rows = (tile_rows - pool.kernel_h) / pool.stride_h + 1, .cols = (cols - pool.kernel_w) / pool.stride_w + 1};
}

Packing RowTiles::packing(const ConvShape& shape) const {
  return {.group_rows = group_rows(),
          .set_rows = block_rows(),
          .chunk_channels = split_channels(shape),
          .sparse = sparse != 0,
          .carries = false,
          .by_column = skip_dead != 0,
          .channel_pitch = channel_pitch(shape),
          .row_pitch = tile_octets,
          .col_pitch = patch_rows(shape) * tile_octets,
          .value_bytes = bytes_of(factors)};
}

std::int64_t RowTiles::lists_bytes(const ConvShape& shape, int step_limit) const {
  if (skip_dead == 0) return 0;
  const std::int64_t slots = std::int64_t{step_limit} * packing(shape).step_columns();
  const std::int64_t of_row = ceil_div(slots, kWarpSize) + octet_warps * split_warps + slots;
  return (ceil_div(split_channels(shape), kWarpSize) + row_warps * of_row) * kWordBytes;
}

std::int64_t RowTiles::shared_bytes(const ConvShape& shape, int step_limit) const {
  constexpr int kRowBytes = 8, kWarpQuadBytes = 512;
  const std::int64_t panel = panel_words(packing(shape), step_limit) * kWordBytes;
  const std::int64_t staged = std::int64_t{split_channels(shape)} * channel_pitch(shape) * octet_bytes();
  const std::int64_t part = std::int64_t{row_warps} * octet_warps * warp_tiles * warp_octets * kWarpQuadBytes;
  const std::int64_t window_pitch = std::int64_t{octets() | 1} * kOctetOutputs;
  const std::int64_t windows = shape.epilogue.pool ? block_rows() * window_pitch * kWordBytes : 0;
  const std::int64_t sums = (split_warps * cluster == 1 ? 0 : split_warps * part) + windows;
  return kSharedReserveBytes + to_banks(std::int64_t{block_rows()} * kRowBytes) + to_banks(panel) +
         to_banks(lists_bytes(shape, step_limit)) + std::max(staged, sums) + part / cluster * (cluster - 1);
}

bool has_rows(const ConvShape& shape) {
  return shape.kernel_w <= kMaxFilterCols &&
         std::int64_t{shape.kernel_w - 1} * shape.dilation_w + shape.stride_w + 1 <= kMaxSpan;
}

bool loads_fours(const RowTiles& tiles, const ConvShape& shape) {
  // Tiles of windows must begin where fours do.
  const std::optional<Pool>& pool = shape.epilogue.pool;
  const bool begins_with_fours =
      !pool || (tiles.windows(shape).cols * pool->stride_w % kFourCols == 0 && pool->pad.left % kFourCols == 0);
  return begins_with_fours && shape.stride_w == 1 && shape.in_w % kFourCols == 0 && shape.pad.left <= kFourCols &&
         (shape.kernel_w - 1) * shape.dilation_w - shape.pad.left <= kFourCols;
}

bool fits(const RowTiles& tiles, const ConvShape& shape, int step_limit, const ArchSpec& arch) {
  const bool warps_in_rows = tiles.tile_octets % tiles.warp_octets == 0 || tiles.warp_octets % tiles.tile_octets == 0;
  return tiles.octets() == tiles.warp_octets * tiles.octet_warps && warps_in_rows &&
         (tiles.skip_dead == 0 || tiles.sparse == 0) && tiles.windows(shape).rows > 0 &&
         (tiles.cluster == 1 || !shape.epilogue.pool) && tiles.warp_octets <= kMostWarpOctets &&
         (tiles.warp_tiles == 1 || tiles.warp_tiles == 2 || tiles.warp_tiles == kMostWarpTiles) &&
         tiles.split_warps <= kMostSplitWarps && tiles.warps() * kWarpSize <= kMostBlockThreads &&
         step_limit <= kMostSteps && tiles.channel_pitch(shape) <= kMostChannelPitch &&
         can_share_sums(tiles.cluster, arch) &&
         (tiles.cluster - 1) * tiles.split_channels(shape) < shape.channels_per_group() &&
         registers(tiles) <= arch.max_registers_per_thread &&
         tiles.shared_bytes(shape, step_limit) <= arch.max_shared_per_block &&
         resident_blocks(tiles, shape, step_limit, arch) >= 1;
}

double predict(const RowTiles& tiles, const ConvShape& shape, const RowColumns& columns, int batch,
               const ArchSpec& arch) {
  // Clocks of 1.98 GHz, fitted to 593 kernels of halves, 15 layers at batch 1, on an H100: 12 % off these in the mean.
  // In TF32 a step has half as many columns in as many bytes and instructions.
  constexpr double kProduct = 1.79;                       // of 16 x 8 sums, a step; where it is dense, two
  constexpr double kLoadRows = 7.4, kLoadWeights = 4.18;  // of 32 octets; of 512 bytes
  constexpr double kStep = 30.6, kProductOfStep = 3.3;    // of a warp that waits for its own step
  constexpr double kLoad = 6.03, kFour = 11.5;            // of a warp that stages a word, or four
  constexpr double kBatch = 378;                          // of loads, until the last of them has come
  constexpr double kPanelByte = 0.0275;                   // the launch before covers the most
  constexpr double kExchange = 12.7, kResidual = 70.5;    // of a warp's 16 x 8 sums; of 16 x 8 sums
  // Clusters that send sums, fitted later, to 67 kernels of 18 layers; of eight it is an estimate. Pairs take no
  // longer.
  constexpr double kFourClocks = 700, kEightClocks = 1100;
  // To deal the slots anew: barriers and what warps wait for between them; of 32 slots, and of 512 bytes looked
  // through.
  constexpr double kDeal = 500, kDealMask = 30, kLookThrough = 8;
  const int steps = estimate_steps(tiles, shape, columns.weights);
  const double multiplied = std::ceil(steps * (1 - dead_share(tiles, shape, columns)));
  const auto blocks = static_cast<double>(tiles.blocks(shape) * batch);
  const int at_once =
      tiles.cluster == 1 ? arch.multiprocessors : arch.clustered_blocks.at(static_cast<std::size_t>(tiles.cluster) - 1);
  const double of_multiprocessor = std::ceil(blocks / at_once);
  const double resident = std::min<double>(of_multiprocessor, std::max(1, resident_blocks(tiles, shape, steps, arch)));
  const double rounds = std::ceil(of_multiprocessor / resident);
  const double dense = tiles.sparse != 0 ? 1 : 2;
  const double sums = tiles.warp_tiles * tiles.warp_octets;  // of a warp
  const double sum_warps = tiles.row_warps * tiles.octet_warps;
  const double multiply =
      multiplied * sum_warps *
      (sums * dense * kProduct + tiles.warp_octets * kLoadRows + tiles.warp_tiles * dense * kLoadWeights);
  const double own_steps = std::ceil(multiplied / tiles.split_warps);
  const double waiting = own_steps * (kStep + sums * dense * kProductOfStep);
  const bool fours = loads_fours(tiles, shape);
  const double items = static_cast<double>(tiles.split_channels(shape)) * tiles.patch_rows(shape) * tiles.tile_octets *
                       (fours ? 1 : kOctetPairs) / kWarpSize;
  const int stores = shape.kernel_w * bytes_of(tiles.factors) / 2;  // of items; words are stored one by one
  const double loads = fours ? (shape.kernel_w == 1 ? 2 : 4) + stores
                             : std::min(2 * shape.kernel_w, shape.kernel_w + shape.stride_w) + stores - shape.kernel_w;
  const double staging = items * loads * (fours ? kFour : kLoad);
  const double batches = std::ceil(items / (tiles.warps() * kItemsAtOnce));
  const double panel = static_cast<double>(panel_words(tiles.packing(shape), steps) * kWordBytes) * kPanelByte;
  const double masks = tiles.row_warps * steps * tiles.packing(shape).step_columns() / double{kWarpSize};
  const double staged = static_cast<double>(tiles.split_channels(shape)) * tiles.channel_pitch(shape) *
                        tiles.octet_bytes() / (kWarpSize * kWideAccessBytes);
  const double dealing = tiles.skip_dead == 0 ? 0 : masks * kDealMask + staged * kLookThrough;
  const bool one = tiles.split_warps * tiles.cluster == 1;
  const double exchange = one ? 0 : tiles.warps() * sums * kExchange;
  const double meetings = tiles.cluster <= 2 ? 0 : tiles.cluster <= 4 ? kFourClocks : kEightClocks;
  double pooling = 0;
  if (const std::optional<Pool>& pool = shape.epilogue.pool) {
    pooling =
        tiles.windows(shape).instructions(*pool) * tiles.block_rows() / (kWarpSize * kSchedulersPerMultiprocessor);
  }
  const double residuals = shape.epilogue.residual ? tiles.block_rows() * tiles.octets() * kResidual / kTileRows : 0;
  const double busy = of_multiprocessor * (multiply + staging + panel + dealing + exchange + pooling + residuals) +
                      rounds * (waiting + batches * kBatch + meetings + tiles.skip_dead * kDeal);
  return launch_time_us({.busy_us = clocks_us(busy, arch),
                         .blocks = of_multiprocessor,
                         .resident = resident,
                         .waits = kConvolutionWaits,
                         .activation_bytes = activation_bytes(shape, batch)},
                        arch);
}

std::vector<RowTiles> choose_row_tiles(const ConvShape& shape, const RowColumns& columns, FactorType factors, int batch,
                                       const ArchSpec& arch) {
  return RowSearch(shape, columns, factors, batch, arch).run();
}

}  // namespace burin
