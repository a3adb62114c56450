#include "compiler/providers/conv_warpgroup_rows/tiles.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <map>

#include "compiler/launch_time.h"
#include "compiler/providers/conv_gathered/tiles.h"
#include "compiler/providers/template_provider.h"
#include "ir/kernel.h"
#include "ir/limits.h"

namespace burin {
namespace {

constexpr int kRowsOfGroup = 64, kWarpsOfGroup = 4;
constexpr int kPlaceBytes = 16, kPanelStepBytes = 2048, kPanelStepWords = kPanelStepBytes / kWordBytes;
constexpr int kMostStagedItems = 8, kPixelsOfOctet = 8;
constexpr int kMostRowGroups = 4, kMostGroupOctets = 32, kMostChunkBuffers = 7;  // as the template has them
constexpr int kMostBuffersOfOthers = 6, kMostStagingWarps = 4;
constexpr int kMostFilterPositions = 25;
constexpr int kMostChunkSteps = 128, kMostPitch = 4096, kMostPlanePixels = 16384;

int filter_positions_of(const ConvShape& shape) {
  return shape.epilogue.filters() ? summed_values(*shape.epilogue.pool) : 0;
}
// A row of a block has a filter, its bias, and what fills up four words.
int filter_words_of(const ConvShape& shape) {
  return shape.epilogue.filters() ? static_cast<int>(round_up(filter_positions_of(shape) + 1, kVectorWords)) : 0;
}

// By which what a position of the filter reads, at most, is further on, of a plane.
int furthest(int kernel, int dilation, int stride) {
  return saturate_to_int(std::int64_t{kernel - 1} * dilation / stride);
}

int planes_of_axis(int kernel, int dilation, int stride) {
  return static_cast<int>(std::min<std::int64_t>(stride, std::int64_t{kernel - 1} * dilation + 1));
}

int thread_registers(const WarpgroupRowTiles& tiles, const ConvShape& shape) {
  constexpr int kOthersOfThread = 48;
  const int staged = tiles.formats.reads_halves ? 0 : tiles.items * tiles.place_channels();
  return tiles.octets(shape) * 4 + staged + kOthersOfThread;
}

int resident_of(const WarpgroupRowTiles& tiles, const ConvShape& shape, const ArchSpec& arch) {
  return resident_blocks(tiles.shared_bytes(shape), thread_registers(tiles, shape), tiles.threads(), arch);
}

class WarpgroupRowSearch {
 public:
  WarpgroupRowSearch(const ConvShape& shape, const RowFormats& formats, int batch, const ArchSpec& arch)
      : shape_(shape), batch_(batch), arch_(arch), tiles_{.formats = formats} {}

  std::vector<WarpgroupRowTiles> run() {
    try_part({shape_.kernel_h, shape_.kernel_w});
    for (const FilterPart& part : proposed_parts(shape_, !best_.empty())) try_part(part);
    std::vector<Found> found;
    for (const auto& [kind, best] : best_) found.push_back(best);
    std::ranges::stable_sort(found, {}, &Found::us);
    std::vector<WarpgroupRowTiles> result;
    for (const Found& each : found) result.push_back(each.tiles);
    return result;
  }

 private:
  struct Found {
    WarpgroupRowTiles tiles;
    double us = 0;
  };

  void try_part(const FilterPart& part) {
    tiles_.part_rows = part.rows;
    tiles_.part_cols = part.cols;
    for (const int rows : {1, 2, 4}) {
      if (rows > 1 && rows / 2 * kRowsOfGroup >= shape_.outputs_per_group()) continue;
      for (const int pixels : {1, 2}) {
        tiles_.row_groups = rows;
        tiles_.pixel_groups = pixels;
        if (tiles_.groups() > kMostRowGroups) continue;
        try_rectangles();
      }
    }
  }

  // A row of all that is stored is parted into so many.
  void try_rectangles() {
    constexpr int kMostOctetsOfRows = 16;
    constexpr int kMostCols = kMostGroupOctets * kPixelsOfOctet, kFewestCols = 28, kFewestOfOneRow = 16;
    const int most_of_rows = shape_.epilogue.filters() ? kMostGroupOctets : kMostOctetsOfRows;
    const int fewest = shape_.conv_h() == 1 ? kFewestOfOneRow : kFewestCols;
    const Pool pool = shape_.epilogue.pool.value_or(Pool{});
    int last = 0;
    for (std::int64_t across = 1; across <= shape_.out_w(); ++across) {
      const std::int64_t stored = ceil_div(shape_.out_w(), across);
      tiles_.tile_cols = saturate_to_int((stored - 1) * pool.stride_w + pool.kernel_w);
      if (tiles_.tile_cols == last || tiles_.tile_cols > kMostCols) continue;
      if (across > 1 && tiles_.tile_cols < fewest) break;
      last = tiles_.tile_cols;
      // A window of a pool may have more rows than there are.
      const int most_rows = std::max(shape_.conv_h(), pool.kernel_h);
      for (int rows = 1; rows <= most_rows; ++rows) {
        tiles_.group_rows = rows;
        if (tiles_.octets(shape_) > (rows == 1 ? kMostGroupOctets : most_of_rows)) break;
        if (rows * (tiles_.pixel_groups - 1) >= most_rows) break;
        const bool is_whole = shape_.epilogue.filters() || (tiles_.tile_rows() - pool.kernel_h) % pool.stride_h == 0;
        if (tiles_.stored_rows(shape_) >= 1 && is_whole) try_chunks();
      }
    }
  }

  void try_chunks() {
    for (const int cluster : {1, 2, 4, 8}) {
      if (cluster > 1 && (cluster - 1) * tiles_.step_channels() >= shape_.channels_per_group()) continue;
      tiles_.cluster = cluster;
      for (int steps = 1; steps <= 8; steps *= 2) {
        tiles_.chunk_channels = steps * tiles_.step_channels();
        if (steps > 1 && tiles_.chunk_channels / 2 * cluster >= shape_.channels_per_group()) continue;
        tiles_.buffers = std::min(tiles_.split_chunks(shape_), kMostChunkBuffers);
        while (tiles_.buffers > 2 && tiles_.shared_bytes(shape_) > arch_.max_shared_per_block) --tiles_.buffers;
        const std::int64_t places = tiles_.staged_bytes(shape_) / kPlaceBytes;
        const auto all = static_cast<int>(std::min<std::int64_t>(ceil_div(places, tiles_.threads()), kMostStagedItems));
        if (tiles_.formats.reads_halves) {  // which are copied, however many a thread has
          tiles_.items = 1;
          consider();
          continue;
        }
        for (const int items : {all, (all + 1) / 2, 2}) {
          tiles_.items = items;
          consider();
        }
      }
    }
  }

  void consider() {
    if (!fits(tiles_, shape_, arch_)) return;
    const double us = predict(tiles_, shape_, batch_, arch_);
    const std::array<int, 6> kind = {tiles_.row_groups,     tiles_.pixel_groups, tiles_.cluster,
                                     tiles_.chunk_channels, tiles_.items,        tiles_.group_rows > 1 ? 1 : 0};
    const auto [place, is_new] = best_.try_emplace(kind);
    if (is_new || us < place->second.us) place->second = {tiles_, us};
  }

  const ConvShape& shape_;
  int batch_;
  const ArchSpec& arch_;
  WarpgroupRowTiles tiles_;
  // The best of each kind: it has warpgroups of rows and of pixels, a cluster, channels of a chunk, what is staged at
  // once, and several rows or one.
  std::map<std::array<int, 6>, Found> best_;
};

}  // namespace

int WarpgroupRowTiles::threads() const { return (groups() * kWarpsOfGroup + staging_warps) * kWarpSize; }
int WarpgroupRowTiles::staging_threads() const { return staging_warps > 0 ? staging_warps * kWarpSize : threads(); }
int WarpgroupRowTiles::block_rows() const { return row_groups * kRowsOfGroup; }

int WarpgroupRowTiles::stored_rows(const ConvShape& shape) const {
  const Pool pool = shape.epilogue.pool.value_or(Pool{});
  return windows(tile_rows(), pool.kernel_h, pool.stride_h);
}
int WarpgroupRowTiles::stored_cols(const ConvShape& shape) const {
  const Pool pool = shape.epilogue.pool.value_or(Pool{});
  return windows(tile_cols, pool.kernel_w, pool.stride_w);
}

int WarpgroupRowTiles::pitch(const ConvShape& shape) const {
  const int further = furthest(part_cols, shape.dilation_w, shape.stride_w);
  const bool has_whole_rows =
      tile_cols == shape.conv_w() && (!shape.epilogue.pool || shape.epilogue.pool->pad.left == 0);
  if (shape.stride_w > 1 || !has_whole_rows) return tile_cols + further;
  return tile_cols + further - std::min({further, shape.pad.left, shape.pad.right});
}

int WarpgroupRowTiles::octets(const ConvShape& shape) const {
  const std::int64_t pixels = std::int64_t{group_rows - 1} * pitch(shape) + tile_cols;
  return saturate_to_int(ceil_div(pixels, kPixelsOfOctet));
}

int WarpgroupRowTiles::planes(const ConvShape& shape) const {
  return planes_of_axis(part_rows, shape.dilation_h, shape.stride_h) *
         planes_of_axis(part_cols, shape.dilation_w, shape.stride_w);
}

int WarpgroupRowTiles::plane_pixels(const ConvShape& shape) const {
  const std::int64_t rows =
      std::int64_t{pixel_groups - 1} * group_rows + furthest(part_rows, shape.dilation_h, shape.stride_h);
  return saturate_to_int(rows * pitch(shape) + furthest(part_cols, shape.dilation_w, shape.stride_w) +
                         std::int64_t{octets(shape)} * kPixelsOfOctet);
}

std::int64_t WarpgroupRowTiles::panels_bytes(const ConvShape& shape) const {
  return std::int64_t{row_groups} * steps(shape) * kPanelStepBytes;
}

std::int64_t WarpgroupRowTiles::staged_bytes(const ConvShape& shape) const {
  return std::int64_t{chunk_channels / place_channels()} * planes(shape) * plane_pixels(shape) * kPlaceBytes;
}

std::int64_t WarpgroupRowTiles::sums_bytes(const ConvShape& shape) const {
  const std::int64_t row_octets = std::int64_t{pixel_groups} * octets(shape) | 1;  // an odd number of them
  return block_rows() * row_octets * kPixelsOfOctet * kWordBytes;
}

std::int64_t WarpgroupRowTiles::received_bytes(const ConvShape& shape) const {
  return sums_bytes(shape) / cluster * (cluster - 1);
}

std::int64_t WarpgroupRowTiles::filters_bytes(const ConvShape& shape) const {
  const std::int64_t bytes = std::int64_t{block_rows()} * filter_words_of(shape) * kWordBytes;
  return ceil_div(bytes, kSharedReserveBytes) * kSharedReserveBytes;
}

std::int64_t WarpgroupRowTiles::filtered_bytes(const ConvShape& shape) const {
  if (!shape.epilogue.filters() || !formats.writes_places) return 0;
  return std::int64_t{block_rows()} / cluster * stored_rows(shape) * stored_cols(shape) * kWordBytes;
}

std::int64_t WarpgroupRowTiles::shared_bytes(const ConvShape& shape) const {
  const std::int64_t multiplied =
      buffers * panels_bytes(shape) + std::min(split_chunks(shape), staged_chunks()) * staged_bytes(shape);
  const std::int64_t added = sums_bytes(shape) / cluster / (formats.writes_halves ? 2 : 1);
  const std::int64_t residual = shape.epilogue.residual ? added : 0;
  return kSharedReserveBytes + filters_bytes(shape) + std::max(multiplied, sums_bytes(shape)) + received_bytes(shape) +
         residual + filtered_bytes(shape);
}

bool fits(const WarpgroupRowTiles& tiles, const ConvShape& shape, const ArchSpec& arch) {
  constexpr std::int64_t kMostPlace = (1 << 18) - kPlaceBytes;  // that an operand of a product may be away
  return is_part(tiles.part(), shape) && tiles.stored_rows(shape) >= 1 && tiles.stored_cols(shape) >= 1 &&
         tiles.groups() <= kMostRowGroups && tiles.octets(shape) <= kMostGroupOctets &&
         tiles.buffers <= (tiles.staging_warps > 0 ? kMostBuffersOfOthers : kMostChunkBuffers) &&
         tiles.staging_warps <= kMostStagingWarps && tiles.buffers >= std::min(2, tiles.split_chunks(shape)) &&
         tiles.chunk_channels % tiles.step_channels() == 0 && filter_positions_of(shape) <= kMostFilterPositions &&
         tiles.steps(shape) <= kMostChunkSteps && tiles.items <= kMostStagedItems && tiles.pitch(shape) <= kMostPitch &&
         tiles.plane_pixels(shape) <= kMostPlanePixels &&
         std::int64_t{tiles.planes(shape)} * tiles.plane_pixels(shape) * kPlaceBytes <= kMostPlace &&
         can_share_sums(tiles.cluster, arch) &&
         (tiles.cluster - 1) * tiles.split_channels(shape) < shape.channels_per_group() &&
         thread_registers(tiles, shape) <=
             std::min(arch.max_registers_per_thread,
                      most_registers(arch.registers_per_multiprocessor, tiles.threads() / kWarpSize)) &&
         tiles.shared_bytes(shape) <= arch.max_shared_per_block && resident_of(tiles, shape, arch) >= 1;
}

bool has_row_tiles(const ConvShape& shape, const RowFormats& formats, const ArchSpec& arch) {
  constexpr int kFewCols = 31;
  WarpgroupRowTiles smallest{.buffers = 2, .formats = formats};
  smallest.chunk_channels = smallest.step_channels();
  const Pool pool = shape.epilogue.pool.value_or(Pool{});
  const std::int64_t stored = ceil_div(shape.out_w(), ceil_div(shape.out_w(), kFewCols));
  smallest.tile_cols = saturate_to_int((stored - 1) * pool.stride_w + pool.kernel_w);
  smallest.group_rows = pool.kernel_h;
  return fits(smallest, shape, arch);
}

namespace {

// What the windows of a pool that filters take of a block. Where they become places, few threads take longer: fitted to
// 270 kernels of MobileNetV1 at batch 1, of which blocks of 256 threads are the fastest.
double filter_clocks(const WarpgroupRowTiles& tiles, const ConvShape& shape) {
  constexpr double kLanes = 128, kOfPosition = 1.5, kOfWindow = 8, kLatency = 300, kOfThread = 47;
  const double windows =
      static_cast<double>(tiles.block_rows()) / tiles.cluster * tiles.stored_rows(shape) * tiles.stored_cols(shape);
  const double of_places = tiles.formats.writes_places ? windows * kOfThread / tiles.threads() : 0;
  return kLatency + windows * (kOfPosition * filter_positions_of(shape) + kOfWindow) / kLanes + of_places;
}

// The bytes of activations that are read and written, once each.
double moved_bytes(const RowFormats& formats, const ConvShape& shape, int batch) {
  const double written =
      static_cast<double>(shape.output_elements() + (shape.epilogue.residual ? shape.conv_elements() : 0));
  const auto bytes = [](bool halves) { return halves ? kWordBytes / 2 : kWordBytes; };
  return batch * (static_cast<double>(shape.input_elements()) * bytes(formats.reads_halves) +
                  written * bytes(formats.writes_halves));
}

}  // namespace

namespace {

// Clocks of 1.98 GHz on an H100.
struct RowClocks {
  double octet, step;           // of a step of a warpgroup: an octet of pixels; at least
  double overlap_loss, chunk;   // of what is not the slowest; of each chunk
  double intake, first_intake;  // bytes of weights in a clock; the launch before covers some
  double pair, four, eight;     // blocks of a cluster that meet
  double cluster_bytes;         // of sums, in a clock
  double copy;                  // of 32 places that are copied as they are
  double sharing = 1;           // of products, where several warpgroups multiply the same pixels
};

// Fitted to 2,449 kernels of 26 layers at batch 1, in FP16 and TF32: 10 % off in the mean. The choices take 1.07 times
// as long as the fastest, in the mean.
constexpr RowClocks kClocksOfFloats = {.octet = 7.6,
                                       .step = 6.6,
                                       .overlap_loss = 0.53,
                                       .chunk = 254,
                                       .intake = 28.3,
                                       .first_intake = 0.45,
                                       .pair = 900,
                                       .four = 1220,
                                       .eight = 1890,
                                       .cluster_bytes = 48,
                                       .copy = 0};
// These are for few images. They were fitted to 1,289 kernels of 26 layers at batch 1, in FP16 in nchw8: 14 % off in
// the mean, choices 1.05 times as long; the last to 404 of 45 layers. What a thread waits for and what it stores is
// hidden.
constexpr RowClocks kClocksOfPlaces = {.octet = 7.4,
                                       .step = 42,
                                       .overlap_loss = 0,
                                       .chunk = 375,
                                       .intake = 54,
                                       .first_intake = 0.88,
                                       .pair = 770,
                                       .four = 1380,
                                       .eight = 1710,
                                       .cluster_bytes = 44,
                                       .copy = 17,
                                       .sharing = 0.84};
// These are for more images, whose blocks follow each other and hide nothing. They were fitted to 352 kernels of 22
// layers at batch 1 and 32, in FP16 in nchw8 and nhwc8: at batch 32 they are 9 % off in the median.
constexpr RowClocks kClocksOfManyPlaces = {.octet = 5.04,
                                           .step = 15,
                                           .overlap_loss = 0.69,
                                           .chunk = 320,
                                           .intake = 58,
                                           .first_intake = 0.74,
                                           .pair = 647,
                                           .four = 1137,
                                           .eight = 1317,
                                           .cluster_bytes = 44,
                                           .copy = 33};
constexpr int kFewImages = 4;

const RowClocks& clocks_of(const RowFormats& formats, int batch) {
  if (!formats.reads_halves) return kClocksOfFloats;
  return batch <= kFewImages ? kClocksOfPlaces : kClocksOfManyPlaces;
}

// What a block takes for its values once they are added up: a part for each sector of 32 bytes where they are planes;
// where they are places of many images, a part of its own, one for each value, and one for each residual beside it.
// Where all channels of a pixel follow each other, neighbours in a warp store places of different lines.
struct EndClocks {
  double sector = 0;
  double of_block = 0, value = 0, residual = 0;
};
constexpr EndClocks kEndInPlanes = {.sector = 1.03};
constexpr EndClocks kEndInPlaces = {.of_block = 337, .value = 0.03, .residual = 0.04};
constexpr EndClocks kEndWithHalvesLast = {.of_block = 337, .value = 0.35, .residual = 0.10};
// Fitted to 176 kernels of the same layers in TF32.
constexpr EndClocks kEndInFloatPlaces = {.of_block = 314, .value = 0.44, .residual = 0.65};

EndClocks end_clocks_of(const RowFormats& formats, int batch) {
  if (!formats.writes_places) return kEndInPlanes;
  if (batch <= kFewImages) return {};
  if (!formats.writes_halves) return kEndInFloatPlaces;
  return formats.writes_last ? kEndWithHalvesLast : kEndInPlaces;
}

// What staging a chunk of activations takes, and what its loads wait for.
struct Staging {
  double clocks = 0, waits = 0;
};
Staging staging_of(const WarpgroupRowTiles& tiles, const RowClocks& clocks, double places) {
  // 32 places take turns of the loop, whether there is something to stage or not, and loads, half as many in TF32; a
  // thread waits for each batch of them.
  constexpr double kTurnClocks = 21.7, kPlaceClocks = 32.7, kBatchLatency = 427, kTf32Share = 0.69;
  if (tiles.formats.reads_halves) return {places / kWarpSize * clocks.copy, 0};
  const double batches = std::ceil(places / (tiles.items * tiles.staging_threads()));
  const double share = tiles.formats.factors == FactorType::tf32 ? kTf32Share : 1;
  return {batches * tiles.items * tiles.staging_threads() / kWarpSize * kTurnClocks * (0.3 + 0.7 * share) +
              places / kWarpSize * kPlaceClocks * share,
          batches * kBatchLatency};
}

// What the weights of a chunk come late, in the mean: they are asked for two chunks after their buffer's last ones
// were.
double late_weights(const WarpgroupRowTiles& tiles, double chunks, double chunk_clocks, double intake_clocks) {
  if (!tiles.formats.reads_halves || chunks <= tiles.buffers) return 0;
  const double late = std::max(0.0, intake_clocks - (tiles.buffers - 2) * chunk_clocks) / (tiles.buffers - 1);
  return late * (chunks - tiles.buffers) / (chunks - 1);
}

}  // namespace

double predict(const WarpgroupRowTiles& tiles, const ConvShape& shape, int batch, const ArchSpec& arch) {
  const RowClocks& clocks = clocks_of(tiles.formats, batch);
  constexpr double kWithResidual = 3;  // what is stored, and the residual with it
  const int at_once =
      tiles.cluster == 1 ? arch.multiprocessors : arch.clustered_blocks.at(static_cast<std::size_t>(tiles.cluster) - 1);
  const auto blocks = static_cast<double>(tiles.blocks(shape) * batch);
  const double of_multiprocessor = std::ceil(blocks / at_once);
  const double resident = std::min<double>(of_multiprocessor, std::max(1, resident_of(tiles, shape, arch)));
  const double rounds = std::ceil(of_multiprocessor / resident);
  const double reading = share_that_reads(tiles.part(), shape, tiles.tile_rows(), tiles.tile_cols);
  const double octets = tiles.octets(shape), chunks = tiles.split_chunks(shape) * reading, steps = tiles.steps(shape);
  const auto [staging, waits] = staging_of(tiles, clocks, static_cast<double>(tiles.staged_bytes(shape)) / kPlaceBytes);
  const double products = steps * tiles.groups() * octets * clocks.octet * (tiles.row_groups > 1 ? clocks.sharing : 1);
  const double of_group = steps * std::max(octets * clocks.octet, clocks.step);
  const double weights = static_cast<double>(tiles.panels_bytes(shape)) / clocks.intake;
  const double slowest = std::max({products, staging, weights, std::max(of_group, waits) / resident});
  const double at_least = slowest + clocks.overlap_loss * (products + staging - std::min(slowest, products + staging)) +
                          clocks.chunk / resident;
  const double chunk = at_least + late_weights(tiles, chunks, at_least, weights);
  const double rows = static_cast<double>(tiles.block_rows()) / tiles.cluster * tiles.stored_rows(shape);
  const double sectors = rows * (tiles.stored_cols(shape) / 8.0 + 1) * (shape.epilogue.residual ? kWithResidual : 1);
  const EndClocks ending = end_clocks_of(tiles.formats, batch);
  const double of_value = ending.value + (shape.epilogue.residual ? ending.residual : 0);
  const double end = ending.of_block + rows * tiles.stored_cols(shape) * of_value + sectors * ending.sector +
                     (shape.epilogue.filters() ? filter_clocks(tiles, shape) : 0);
  const double of_block = (chunks - 1) * chunk + std::max(staging, clocks.first_intake * weights) +
                          std::max(products, of_group / resident) + end;
  const double meetings = tiles.cluster <= 2 ? clocks.pair : tiles.cluster <= 4 ? clocks.four : clocks.eight;
  const double cluster =
      tiles.cluster == 1 ? 0 : meetings + static_cast<double>(tiles.received_bytes(shape)) / clocks.cluster_bytes;
  const double busy = of_multiprocessor * of_block + rounds * (waits + cluster);
  return launch_time_us({.busy_us = clocks_us(busy, arch),
                         .blocks = of_multiprocessor,
                         .resident = resident,
                         .waits = kConvolutionWaits,
                         .activation_bytes = moved_bytes(tiles.formats, shape, batch)},
                        arch);
}

std::vector<WarpgroupRowTiles> choose_warpgroup_rows(const ConvShape& shape, const RowFormats& formats, int batch,
                                                     const ArchSpec& arch) {
  return WarpgroupRowSearch(shape, formats, batch, arch).run();
}

std::int64_t packed_words(const ConvShape& shape, const WarpgroupRowTiles& tiles) {
  const std::int64_t sets = tiles.sets(shape);
  return sets * tiles.cluster * tiles.split_chunks(shape) * tiles.panels_bytes(shape) / kWordBytes +
         sets * tiles.block_rows() * (1 + filter_words_of(shape));
}

std::vector<std::uint32_t> pack_warpgroup_rows(const ConvLayer& layer, const ConvShape& shape,
                                               const WarpgroupRowTiles& tiles) {
  std::vector<std::uint32_t> words(static_cast<std::size_t>(packed_words(shape, tiles)));
  const int positions = tiles.part_rows * tiles.part_cols, parts = count_parts(tiles.part(), shape),
            outputs = shape.outputs_per_group();
  const int split = tiles.split_channels(shape), steps = tiles.steps(shape), place = tiles.place_channels();
  const std::int64_t chunks = tiles.split_chunks(shape);
  const std::int64_t all_rows = std::int64_t{tiles.sets(shape)} * tiles.block_rows();
  const int filter_words = filter_words_of(shape);
  const std::int64_t first_filter = std::ssize(words) - all_rows * filter_words;
  const std::int64_t first_bias = first_filter - all_rows;
  for (int output = 0; output < shape.out_channels; ++output) {
    const int of_group = output % outputs, of_set = of_group % tiles.block_rows(), row = of_set % kRowsOfGroup;
    const std::int64_t set =
        std::int64_t{output / outputs} * tiles.output_blocks(shape) + of_group / tiles.block_rows();
    for (int c = 0; c < shape.channels_per_group(); ++c) {
      const int of_chunk = c % split % tiles.chunk_channels, k = of_chunk % tiles.step_channels();
      for (int position = 0; position < shape.kernel_h * shape.kernel_w; ++position) {
        const int filter_row = position / shape.kernel_w, filter_col = position % shape.kernel_w;
        const PartPosition at_part = part_position(tiles.part(), shape, filter_row, filter_col);
        const std::int64_t of_split = std::int64_t{c % split / tiles.chunk_channels} * parts + at_part.part;
        const std::int64_t chunk = (set * tiles.cluster + c / split) * chunks + of_split;
        const std::int64_t panel = chunk * tiles.row_groups + of_set / kRowsOfGroup;
        const std::int64_t step =
            panel * steps + std::int64_t{of_chunk / tiles.step_channels()} * positions + at_part.position;
        // In halves two to a word.
        const std::int64_t word = step * kPanelStepWords + row / 8 * 64 + k / place * 32 + row % 8 * 4 +
                                  k % place * bytes_of(tiles.formats.factors) / kWordBytes;
        const float weight = layer.weight(output, c, filter_row, filter_col);
        std::uint32_t& at = words[static_cast<std::size_t>(word)];
        if (tiles.formats.factors == FactorType::tf32) {
          at = std::bit_cast<std::uint32_t>(rounded(FactorType::tf32, weight));
        } else {
          const auto type = tiles.formats.factors == FactorType::bf16 ? ElementType::bf16 : ElementType::f16;
          at |= k % 2 == 0 ? half_word(type, weight, 0) : half_word(type, 0, weight);
        }
      }
    }
    const std::int64_t row_of_all = set * tiles.block_rows() + of_set;
    const auto channel = static_cast<std::size_t>(output);
    if (shape.epilogue.bias) {
      words[static_cast<std::size_t>(first_bias + row_of_all)] = std::bit_cast<std::uint32_t>(layer.bias[channel]);
    }
    if (filter_words == 0) continue;
    std::uint32_t* filter = &words[static_cast<std::size_t>(first_filter + row_of_all * filter_words)];
    const auto filter_positions = static_cast<std::size_t>(filter_positions_of(shape));
    for (std::size_t i = 0; i < filter_positions; ++i) {
      filter[i] = std::bit_cast<std::uint32_t>(layer.filters[channel * filter_positions + i]);
    }
    filter[filter_positions] = std::bit_cast<std::uint32_t>(layer.filter_bias[channel]);
  }
  return words;
}

}  // namespace burin
