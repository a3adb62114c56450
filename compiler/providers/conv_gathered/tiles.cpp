#include "compiler/providers/conv_gathered/tiles.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "compiler/launch_time.h"
#include "ir/error.h"
#include "ir/kernel.h"

namespace burin {
namespace {

constexpr int kMaxSlots = 32, kMaxWarpPixels = 14, kMaxWarpTiles = 4;  // as the template has them
constexpr int kMostThreads = 512;
constexpr int kMaxStepLimit = 64;
constexpr int kMostSetBlocks = 1 << 20, kMostOctets = 128;

int registers(const GatheredTiles& tiles, const ConvShape& shape) {
  constexpr int kOthers = 40;  // a step's rows, and addresses but those of what is copied
  return step_registers(tiles.warp_tiles, tiles.warp_pixels, tiles.sparse != 0, kOthers + tiles.slots(shape));
}

int resident_blocks(const GatheredTiles& tiles, const ConvShape& shape, int step_limit, const ArchSpec& arch) {
  return resident_blocks(tiles.shared_bytes(shape, step_limit), registers(tiles, shape), tiles.threads(), arch);
}

// The steps of a row group, and the most that a chunk has, where `live` columns are spread evenly.
struct StepEstimate {
  double all = 0;
  int most = 0;
};
StepEstimate estimate_steps(const GatheredTiles& tiles, const ConvShape& shape, const LiveColumns& columns) {
  constexpr double kUneven = 0.3;  // of a step, by which chunks have more than their share
  const Packing packing = tiles.packing(shape);
  const double live = multiplied_columns(columns, packing);
  const auto chunks = static_cast<double>(tiles.chunks(shape));
  const int step_columns = packing.step_columns();
  const double of_chunk = live / chunks / step_columns;
  const double all =
      tiles.carries != 0 ? live / step_columns + 0.5 : chunks * std::ceil(of_chunk + (chunks > 1 ? kUneven / 2 : 0));
  return {all, static_cast<int>(std::ceil(of_chunk + (chunks > 1 ? kUneven : 0)))};
}

class GatheredSearch {
 public:
  GatheredSearch(const ConvShape& shape, const LiveColumns& live, int batch, const ArchSpec& arch)
      : shape_(shape), live_(live), batch_(batch), arch_(arch) {}

  std::vector<GatheredTiles> run() {
    for (const int tiles : {1, 2, 4}) {
      for (const int warps : {1, 2, 4}) {
        tiles_.warp_tiles = tiles;
        tiles_.row_warps = warps;
        const int rows = tiles_.block_rows();
        if (rows > kTileRows && rows / 2 >= round_up_rows()) continue;
        for (const int sparse : {0, 1}) {
          tiles_.sparse = sparse;
          try_pixels();
        }
      }
    }
    std::vector<Found> found;
    for (const auto& [kind, best] : best_) found.push_back(best);
    std::ranges::stable_sort(found, {}, &Found::us);
    std::vector<GatheredTiles> result;
    for (const Found& each : found) result.push_back(each.tiles);
    return result;
  }

 private:
  struct Found {
    GatheredTiles tiles;
    double us = 0;
  };

  int round_up_rows() const { return static_cast<int>(ceil_div(shape_.outputs_per_group(), kTileRows)) * kTileRows; }

  // What all windows read: with padding that may be more than there is.
  std::int64_t read_rows() const {
    return WindowTile::all_of(shape_).pixel_rows(shape_.epilogue.pool.value_or(Pool{}));
  }
  std::int64_t read_cols() const {
    return WindowTile::all_of(shape_).pixel_cols(shape_.epilogue.pool.value_or(Pool{}));
  }

  void try_pixels() {
    for (int pixels = 1; pixels <= kMaxWarpPixels; ++pixels) {
      for (const int warps : {1, 2, 3, 4, 6, 7, 8}) {
        tiles_.warp_pixels = pixels;
        tiles_.pixel_warps = warps;
        for (const int splits : {1, 2, 4, 8}) {
          tiles_.split_warps = splits;
          if (tiles_.threads() <= kMostThreads) try_rectangles();
        }
      }
    }
  }

  void try_rectangles() {
    const int pixels = tiles_.warp_pixels * tiles_.pixel_warps;
    for (int cols = 1; cols <= pixels; ++cols) {
      if (pixels % cols != 0) continue;
      const int rows = pixels / cols;
      if (cols % tiles_.warp_pixels != 0 && tiles_.warp_pixels % cols != 0) continue;
      // Half of it would do.
      if ((cols > 1 && cols / 2 >= read_cols()) || (rows > 1 && rows / 2 >= read_rows())) continue;
      tiles_.tile_rows = rows;
      tiles_.tile_cols = cols;
      if (tiles_.windows(shape_).rows > 0) try_chunks();
    }
  }

  void try_chunks() {
    const auto all = static_cast<int>(ceil_div(shape_.channels_per_group(), kOctetChannels)) * kOctetChannels;
    for (const int channels : {8, 16, 32, 64, 128}) {
      if (channels > kOctetChannels && channels / 2 >= all) continue;
      tiles_.chunk_channels = std::min(channels, all);
      const bool one = tiles_.chunk_channels == all;
      for (const int buffers : {2, 3, 4, 6, 8}) {
        tiles_.buffers = buffers;
        for (const int carries : {0, 1}) {
          tiles_.carries = carries;
          if (carries == 0 || (buffers > 2 && !one)) try_blocks();
        }
      }
    }
  }

  // A block for each tile, or as many as run at the same time.
  void try_blocks() {
    tiles_.octets = 1;
    tiles_.keeps_panels = 0;
    tiles_.set_blocks = static_cast<int>(std::min<std::int64_t>(tiles_.image_tiles(shape_), kMostSetBlocks));
    consider();
    tiles_.octets = static_cast<int>(std::min<std::int64_t>(ceil_div(batch_, kOctetImages), kMostOctets));
    const int steps = estimate_steps(tiles_, shape_, live_).most;
    for (const int keeps : {0, 1}) {
      tiles_.keeps_panels = keeps;
      tiles_.set_blocks = 1;
      const int resident = resident_blocks(tiles_, shape_, steps, arch_);
      for (int each = 1; each <= resident; ++each) {
        const int blocks = arch_.multiprocessors * each / tiles_.sets(shape_);
        if (blocks < 1 || blocks >= tiles_.tiles(shape_)) continue;
        tiles_.set_blocks = blocks;
        consider();
      }
    }
  }

  void consider() {
    for (const int exchanges : {1, 2}) {
      tiles_.exchanges = exchanges;
      if (exchanges == 1 || (shape_.epilogue.residual && tiles_.set_blocks < tiles_.tiles(shape_)))
        consider_exchanges();
    }
  }

  void consider_exchanges() {
    if (!fits(tiles_, shape_, estimate_steps(tiles_, shape_, live_).most, arch_)) return;
    const double us = predict(tiles_, shape_, live_, batch_, arch_);
    const std::array<int, 6> kind = {tiles_.warp_tiles, tiles_.row_warps,          tiles_.split_warps,
                                     tiles_.sparse,     tiles_.octets > 1 ? 1 : 0, tiles_.exchanges};
    const auto [place, is_new] = best_.try_emplace(kind);
    if (is_new || us < place->second.us) place->second = {tiles_, us};
  }

  const ConvShape& shape_;
  const LiveColumns& live_;
  int batch_;
  const ArchSpec& arch_;
  GatheredTiles tiles_;
  // The best of each kind: it has tiles and warps of rows, splits, exchanges, is sparse or not, and its blocks have
  // several tiles or one.
  std::map<std::array<int, 6>, Found> best_;
};

}  // namespace

ConvShape gathered_shape(const ConvShape& shape) {
  ConvShape seen = shape;
  const bool in_order = filter_positions(shape) == 1 && shape.stride_h == 1 && shape.stride_w == 1 &&
                        shape.pad == Padding{} && !shape.epilogue.pool;
  if (!in_order) return seen;
  seen.in_w = shape.in_h * shape.in_w;
  seen.in_h = 1;
  return seen;
}

int GatheredTiles::patch_rows(const ConvShape& shape) const {
  return compact(shape) ? tile_rows : (tile_rows - 1) * shape.stride_h + (shape.kernel_h - 1) * shape.dilation_h + 1;
}

int GatheredTiles::patch_cols(const ConvShape& shape) const {
  return compact(shape) ? tile_cols : (tile_cols - 1) * shape.stride_w + (shape.kernel_w - 1) * shape.dilation_w + 1;
}

int GatheredTiles::slots(const ConvShape& shape) const {
  return static_cast<int>(ceil_div(patch_pixels(shape), threads() / kOctetChannels));
}

Packing GatheredTiles::packing(const ConvShape& shape) const {
  return {.group_rows = group_rows(),
          .set_rows = block_rows(),
          .chunk_channels = chunk_channels,
          .sparse = sparse != 0,
          .carries = carries != 0,
          .channels_together = kOctetChannels,
          .channel_pitch = patch_pixels(shape),
          .row_pitch = patch_cols(shape),
          .col_pitch = shape.dilation_w};
}

std::int64_t GatheredTiles::shared_bytes(const ConvShape& shape, int step_limit) const {
  constexpr int kRowBytes = 8;
  const std::int64_t panel = panel_words(packing(shape), step_limit) * kWordBytes;
  const std::int64_t activations = std::int64_t{chunk_channels} * patch_pixels(shape) * kOctetBytes;
  const std::int64_t kept = keeps_panels != 0 ? to_banks(chunks(shape) * panel) : 0;
  const std::int64_t copied = buffers * to_banks(activations + (keeps_panels != 0 ? 0 : panel));
  const bool exchanges_any = !shape.epilogue.pool || shape.epilogue.residual;
  const std::int64_t exchanged = exchanges_any ? exchanges * exchange_bytes() : 0;
  const std::int64_t added_up = std::int64_t{block_rows()} * pixels() * (split_warps - 1) * kOctetImages * kWordBytes;
  const std::int64_t before =
      kSharedReserveBytes + to_banks(std::int64_t{block_rows()} * kRowBytes) + kept + windows_bytes(shape);
  const bool one_tile = set_blocks >= tiles(shape);
  if (shape.epilogue.residual) {
    return before + (one_tile ? std::max(copied, to_banks(added_up)) + exchanged : copied + exchanged + added_up);
  }
  return before + (one_tile ? std::max({copied, exchanged, added_up}) : copied + std::max(exchanged, added_up));
}

WindowTile GatheredTiles::windows(const ConvShape& shape) const {
  const Pool pool = shape.epilogue.pool.value_or(Pool{});
  if (tile_rows < pool.kernel_h || tile_cols < pool.kernel_w) return {.rows = 0, .cols = 0};
  return {.rows = (tile_rows - pool.kernel_h) / pool.stride_h + 1,
          .cols = (tile_cols - pool.kernel_w) / pool.stride_w + 1};
}

std::int64_t GatheredTiles::windows_bytes(const ConvShape& shape) const {
  const std::int64_t pitch = pixels() | 1;
  return shape.epilogue.pool ? to_banks(block_rows() * pitch * kOctetImages * kWordBytes) : 0;
}

std::int64_t GatheredTiles::exchange_bytes() const {
  const std::int64_t pitch = pixels() | 1;
  return to_banks(block_rows() * pitch * kOctetBytes);
}

bool fits(const GatheredTiles& tiles, const ConvShape& shape, int step_limit, const ArchSpec& arch) {
  const bool warps_in_rows = tiles.tile_cols % tiles.warp_pixels == 0 || tiles.warp_pixels % tiles.tile_cols == 0;
  return tiles.pixels() == tiles.warp_pixels * tiles.pixel_warps && warps_in_rows && tiles.windows(shape).rows > 0 &&
         tiles.warp_pixels <= kMaxWarpPixels &&
         (tiles.warp_tiles == 1 || tiles.warp_tiles == 2 || tiles.warp_tiles == kMaxWarpTiles) &&
         tiles.threads() <= kMostThreads && tiles.slots(shape) <= kMaxSlots && step_limit <= kMaxStepLimit &&
         tiles.chunk_channels % kOctetChannels == 0 && tiles.ahead() >= 1 && tiles.set_blocks <= tiles.tiles(shape) &&
         tiles.octets <= kMostOctets && tiles.exchanges >= 1 && tiles.exchanges <= (shape.epilogue.residual ? 2 : 1) &&
         registers(tiles, shape) <= arch.max_registers_per_thread &&
         tiles.shared_bytes(shape, step_limit) <= arch.max_shared_per_block &&
         resident_blocks(tiles, shape, step_limit, arch) >= 1;
}

bool has_tiles(const ConvShape& shape, const ArchSpec& arch) {
  GatheredTiles smallest{.split_warps = 8};
  if (const std::optional<Pool>& pool = shape.epilogue.pool) {
    // The smallest with a window, whose rows are a warp's each.
    smallest = {.warp_pixels = pool->kernel_w,
                .pixel_warps = pool->kernel_h,
                .tile_rows = pool->kernel_h,
                .tile_cols = pool->kernel_w};
  }
  const int columns = kOctetChannels * filter_positions(shape);
  return fits(smallest, shape, static_cast<int>(ceil_div(columns, smallest.packing(shape).step_columns())), arch);
}

LiveColumns live_columns(const ConvShape& shape, const SparsePattern& pattern) {
  LiveColumns live;
  for (const int tiles : {1, 2, kMaxWarpTiles}) {
    const int rows = tiles * kTileRows;
    const Packing packing{.group_rows = rows, .set_rows = rows};
    int most = 1;
    for (const ColumnMasks& masks : column_masks(shape, pattern, order_outputs(shape, pattern, packing), rows)) {
      most = std::max(most, static_cast<int>(std::ranges::count_if(masks, [](std::uint64_t m) { return m != 0; })));
    }
    live.of_groups[rows] = most;
  }
  for (const int nonzeros : pattern.statistics.per_row) live.of_row = std::max(live.of_row, nonzeros);
  live.mean_row = static_cast<double>(pattern.statistics.nonzeros) / shape.out_channels;
  return live;
}

double multiplied_columns(const LiveColumns& live, const Packing& packing) {
  const double columns = live.of_groups.at(packing.group_rows);
  if (!packing.sparse) return columns;
  if (packing.word_values() == 1) {
    // Of two columns a row stores one: how often two that are drawn have no row in common says how many find a second
    // one. (Fitted to the packing of four layers with 3 to 100 % nonzeros.)
    constexpr double kTries = 9;
    const double density = std::min(1.0, live.mean_row / columns);
    return columns * (1 + std::exp(-kTries * std::pow(1 - density * density, packing.group_rows)));
  }
  // Of four columns a sparse row stores two: the fullest row cannot have its nonzeros in fewer.
  constexpr double kLoose = 1.15;
  return std::max(columns, 2 * kLoose * live.of_row);
}

std::int64_t to_banks(std::int64_t bytes) {
  constexpr int kBankBytes = 128;
  return ceil_div(bytes, kBankBytes) * kBankBytes;
}

int step_registers(int warp_tiles, int warp_octets, bool sparse, int others) {
  const int weights = warp_tiles * 4 * (sparse ? 1 : 2) + (sparse ? warp_tiles : 0);
  return warp_tiles * warp_octets * 4 + 2 * weights + others;
}

int resident_blocks(std::int64_t shared_bytes, int registers, int threads, const ArchSpec& arch) {
  constexpr int kSharedOfBlock = 1024;  // the driver's own
  const auto by_shared = static_cast<int>(arch.max_shared_per_multiprocessor / (shared_bytes + kSharedOfBlock));
  const int by_registers = resident_warps(arch.registers_per_multiprocessor, registers) / (threads / kWarpSize);
  return std::min({by_shared, by_registers, arch.max_threads_per_multiprocessor / threads});
}

bool can_share_sums(int cluster, const ArchSpec& arch) {
  const bool is_power_of_two = cluster >= 1 && std::has_single_bit(static_cast<unsigned>(cluster));
  return is_power_of_two && (cluster == 1 || (arch.clusters && cluster <= kMaxClusterBlocks));
}

double predict(const GatheredTiles& tiles, const ConvShape& shape, const LiveColumns& live, int batch,
               const ArchSpec& arch) {
  // Clocks of a multiprocessor, fitted to 224 kernels of eight layers at batch 32, on an H100: 12 % off in the mean.
  constexpr double kSparseProduct = 2.84, kProduct = 5.76;  // of 16 x 8 sums, 32 columns
  constexpr double kLoadRows = 4.75, kLoadWeights = 3.5;    // of 32 rows; of 512 bytes
  constexpr double kIntakeBytesPerClock = 21.6, kChunkClocks = 154, kLatencyClocks = 960, kWarpLag = 1.8;
  constexpr double kOctetClocks = 1.4, kEndClocks = 340;  // of what is stored: eight images of a pixel; a tile
  constexpr double kOverlapLoss = 0.3;
  const auto blocks = static_cast<double>(std::int64_t{tiles.sets(shape)} * tiles.set_blocks *
                                          ceil_div(batch, kOctetImages * tiles.octets));
  const StepEstimate steps = estimate_steps(tiles, shape, live);
  const double of_multiprocessor = std::ceil(blocks / arch.multiprocessors);
  const double resident =
      std::min<double>(of_multiprocessor, std::max(1, resident_blocks(tiles, shape, steps.most, arch)));
  const bool sparse = tiles.sparse != 0;
  const double products = tiles.warp_tiles * tiles.warp_pixels * (sparse ? kSparseProduct : kProduct);
  const double loads = tiles.warp_pixels * kLoadRows + tiles.warp_tiles * (sparse ? 1 : 2) * kLoadWeights +
                       (sparse ? (tiles.warp_tiles + 1) / 2 : 0) + 1;
  const double step = std::max(products, loads) + kOverlapLoss * std::min(products, loads);
  const double warps = tiles.threads() / static_cast<double>(kWarpSize) * resident;
  const double share = warps / (warps + kWarpLag);
  const auto chunks = static_cast<double>(tiles.chunks(shape));
  const double busy = steps.all / chunks * tiles.row_warps * tiles.pixel_warps * step / share + kChunkClocks / resident;
  const double bytes =
      static_cast<double>(tiles.chunk_channels * tiles.patch_pixels(shape) * kOctetBytes) +
      (tiles.keeps_panels != 0 ? 0 : static_cast<double>(panel_words(tiles.packing(shape), steps.most) * kWordBytes));
  const double intake = bytes / kIntakeBytesPerClock;
  const double waiting = (kLatencyClocks + intake) / tiles.ahead() / resident;
  const double slowest = std::max({busy, intake, waiting});
  const double chunk = slowest + kOverlapLoss * (busy + intake - std::min(busy + intake, slowest));
  const double octets = static_cast<double>(tiles.block_rows()) * tiles.pixels();
  double end = octets * (kOctetClocks + 0.3 * (tiles.split_warps - 1)) + kEndClocks / resident;
  if (const std::optional<Pool>& pool = shape.epilogue.pool) {
    end += tiles.windows(shape).instructions(*pool) * tiles.block_rows() * kOctetImages /
           (kWarpSize * kSchedulersPerMultiprocessor);
  }
  const double multiplied = chunks * chunk;
  double tile = multiplied + end;
  if (shape.epilogue.residual) {
    // It is copied while this tile is multiplied, or the one before it from its beginning to its end.
    const double copied = chunks * intake + octets * kOctetBytes / kIntakeBytesPerClock;
    const auto overlapped = [](double a, double b) { return std::max(a, b) + kOverlapLoss * std::min(a, b); };
    tile = tiles.exchanges > 1 ? overlapped(tile, copied)
                               : overlapped(multiplied, copied + kLatencyClocks / resident) + end;
  }
  const double of_block = static_cast<double>(ceil_div(tiles.tiles(shape), tiles.set_blocks));
  const double kept = tiles.keeps_panels != 0
                          ? chunks * static_cast<double>(panel_words(tiles.packing(shape), steps.most) * kWordBytes) /
                                kIntakeBytesPerClock
                          : 0;
  return launch_time_us({.busy_us = clocks_us(of_multiprocessor * (of_block * tile + kept), arch),
                         .blocks = of_multiprocessor,
                         .resident = resident,
                         .waits = kConvolutionWaits,
                         .activation_bytes = activation_bytes(shape, batch) / 2},
                        arch);
}

std::vector<GatheredTiles> choose_gathered(const ConvShape& shape, const LiveColumns& live, int batch,
                                           const ArchSpec& arch) {
  return GatheredSearch(shape, live, batch, arch).run();
}

}  // namespace burin
