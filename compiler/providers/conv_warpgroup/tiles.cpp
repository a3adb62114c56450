#include "compiler/providers/conv_warpgroup/tiles.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>

#include "compiler/launch_time.h"
#include "compiler/providers/conv_warpgroup/packing.h"
#include "ir/kernel.h"
#include "ir/limits.h"

namespace burin {
namespace {

constexpr int kMostGroups = 4, kMostBuffers = 4;  // as the template has them
constexpr int kMostUnrolledSteps = 128, kMostSparseSteps = 32, kMostRestSteps = 64;
constexpr int kMostImageGroups = 128, kMostBlocksOfSet = 1 << 20;

int thread_registers(const WarpgroupTiles& tiles, const ConvShape& shape) {
  constexpr int kOthersOfThread = 36, kPlacesBesideWindows = 12;  // places of a sparse matrix are there as long as sums
  const bool both = shape.epilogue.pool && tiles.sparse != 0;
  return tiles.group_pixels(shape) * 4 + kOthersOfThread + (both ? kPlacesBesideWindows : 0);
}

double window_positions(const Pool& pool) { return static_cast<double>(pool.kernel_h) * pool.kernel_w; }

int resident_of(const WarpgroupTiles& tiles, const ConvShape& shape, int rest_limit, const ArchSpec& arch) {
  return resident_blocks(tiles.shared_bytes(shape, rest_limit), thread_registers(tiles, shape), tiles.threads(), arch);
}

// Nonzeros of a row beyond two of four side by side, as a share of all weights, if they lie at random.
double share_beyond_two_of_four(double density) {
  const double zero = 1 - density, three = 4 * std::pow(density, 3) * zero, four = std::pow(density, 4);
  return (three + 2 * four) / 4;
}
// Steps of 16 columns that a warp has for a chunk.
double rest_steps_of_chunk(const WarpgroupTiles& tiles, const ConvShape& shape, double density) {
  if (tiles.sparse == 0) return 0;
  const double columns = static_cast<double>(tiles.chunk_channels) * tiles.part_rows * tiles.part_cols;
  const double beyond = share_beyond_two_of_four(density) * columns * kWarpRows;
  // Several rows may have one in the same column.
  const double gathered = columns * (1 - std::exp(-beyond / columns));
  return gathered / kRestColumns + 0.5 * std::min(1.0, gathered);
}
int rest_limit_of_chunk(const WarpgroupTiles& tiles, const ConvShape& shape, double density) {
  constexpr double kFullest = 2;  // times the mean has the fullest
  return tiles.sparse == 0
             ? 0
             : static_cast<int>(std::ceil(kFullest * (rest_steps_of_chunk(tiles, shape, density) - 0.25)));
}

// A buffer is emptied when the next one has been filled, and a third one is filled meanwhile.
bool can_overlap(const WarpgroupTiles& tiles) {
  constexpr int kFewestBuffers = 3;
  return tiles.sparse == 0 && tiles.buffers >= kFewestBuffers;
}

bool is_too_narrow(const WarpgroupTiles& tiles, const ConvShape& shape) {
  constexpr int kLeastCols = 4;
  return tiles.pixel_cols(shape) < kLeastCols;
}

int image_groups_for(int batch) {
  return static_cast<int>(std::min<std::int64_t>(ceil_div(batch, kOctetImages), kMostImageGroups));
}

class WarpgroupSearch {
 public:
  WarpgroupSearch(const ConvShape& shape, double density, int batch, const ArchSpec& arch)
      : shape_(shape), density_(density), batch_(batch), arch_(arch) {}

  std::vector<WarpgroupTiles> run() {
    try_part({shape_.kernel_h, shape_.kernel_w});
    for (const FilterPart& part : proposed_parts(shape_, !best_.empty())) try_part(part);
    std::vector<Found> found;
    for (const auto& [kind, best] : best_) found.push_back(best);
    std::ranges::stable_sort(found, {}, &Found::us);
    try_both_soon(found);
    std::vector<WarpgroupTiles> result;
    for (const Found& each : found) result.push_back(each.tiles);
    return result;
  }

 private:
  struct Found {
    WarpgroupTiles tiles;
    double us = 0;
  };

  // The model errs most between sparse products and whole ones: whoever measures a few finds the best of both.
  static void try_both_soon(std::vector<Found>& found) {
    constexpr std::ptrdiff_t kSoon = 2;
    if (std::ssize(found) <= kSoon) return;
    const auto soon = found.begin() + kSoon;
    const auto other = std::find_if(found.begin(), found.end(),
                                    [&](const Found& one) { return one.tiles.sparse != found.front().tiles.sparse; });
    if (other != found.end() && other > soon) std::rotate(soon, other, other + 1);
  }

  void try_part(const FilterPart& part) {
    tiles_.part_rows = part.rows;
    tiles_.part_cols = part.cols;
    for (const int rows : {1, 2, 4}) {
      if (rows > 1 && rows / 2 * kGroupRows >= shape_.outputs_per_group()) continue;
      for (const int pixels : {1, 2, 3, 4}) {
        tiles_.row_groups = rows;
        tiles_.pixel_groups = pixels;
        if (tiles_.groups() > kMostGroups) continue;
        for (const int sparse : {0, 1}) {
          tiles_.sparse = sparse;
          try_rectangles();
        }
      }
    }
  }

  void try_rectangles() {
    int last = 0;
    for (std::int64_t across = 1; across <= shape_.out_w(); ++across) {
      tiles_.tile_cols = static_cast<int>(ceil_div(shape_.out_w(), across));
      if (tiles_.tile_cols == last || tiles_.tile_cols > kMostGroupPixels) continue;
      last = tiles_.tile_cols;
      if (is_too_narrow(tiles_, shape_) && across > 1) break;
      for (int rows = 1; rows <= shape_.out_h(); ++rows) {
        tiles_.group_rows = rows;
        if (tiles_.group_pixels(shape_) > kMostGroupPixels) break;
        if (rows > 1 && rows * (tiles_.pixel_groups - 1) >= shape_.out_h()) break;
        try_chunks();
      }
    }
  }

  void try_chunks() {
    for (const int channels : {16, 32, 64, 128, 256}) {
      if (channels > 32 && channels / 2 >= shape_.channels_per_group()) continue;
      tiles_.chunk_channels = channels;
      if (tiles_.sparse != 0 && channels < 32) continue;
      for (int buffers = 2; buffers <= kMostBuffers; ++buffers) {
        tiles_.buffers = buffers;
        for (const int overlap : {0, 1}) {
          tiles_.overlap = overlap;
          try_blocks();
        }
      }
    }
  }

  // As many blocks as run at the same time, in whole waves.
  void try_blocks() {
    tiles_.image_groups = image_groups_for(batch_);
    tiles_.set_blocks = 1;
    const int limit = rest_limit_of_chunk(tiles_, shape_, density_);
    if (!fits(tiles_, shape_, limit, arch_)) return;
    const std::int64_t tiles = tiles_.tiles(shape_);
    const std::int64_t room = std::max<std::int64_t>(
        1, std::int64_t{arch_.multiprocessors} * resident_of(tiles_, shape_, limit, arch_) / tiles_.sets(shape_));
    const std::int64_t rounds = ceil_div(tiles, std::min({room, tiles, std::int64_t{kMostBlocksOfSet}}));
    tiles_.set_blocks = static_cast<int>(ceil_div(tiles, rounds));
    const double us = predict(tiles_, shape_, density_, batch_, arch_);
    const std::array<int, 5> kind = {tiles_.row_groups, tiles_.pixel_groups, tiles_.sparse, tiles_.chunk_channels,
                                     tiles_.group_rows > 1 ? 1 : 0};
    const auto [place, is_new] = best_.try_emplace(kind);
    if (is_new || us < place->second.us) place->second = {tiles_, us};
  }

  const ConvShape& shape_;
  double density_;
  int batch_;
  const ArchSpec& arch_;
  WarpgroupTiles tiles_;
  // The best of each kind: it has warpgroups of rows and of pixels, channels of a chunk, several rows or one, and is
  // sparse or not.
  std::map<std::array<int, 5>, Found> best_;
};

}  // namespace

ConvShape warpgroup_shape(const ConvShape& shape) { return gathered_shape(shape); }

int step_of_axis(int kernel, int stride, int dilation) {
  const int apart = kernel == 1 ? stride : std::gcd(stride, dilation);
  int step = std::min(apart, kMaxBoxStep);
  while (apart % step != 0) --step;
  return step;
}

int WarpgroupTiles::threads() const { return (groups() * kGroupWarps + 1) * kWarpSize; }
int WarpgroupTiles::block_rows() const { return row_groups * kGroupRows; }

int WarpgroupTiles::step_rows(const ConvShape& shape) const {
  return step_of_axis(part_rows, shape.stride_h, shape.dilation_h);
}
int WarpgroupTiles::step_cols(const ConvShape& shape) const {
  return step_of_axis(part_cols, shape.stride_w, shape.dilation_w);
}

int WarpgroupTiles::pixel_rows(const ConvShape& shape, int rows) {
  const Pool pool = shape.epilogue.pool.value_or(Pool{});
  return saturate_to_int(std::int64_t{rows - 1} * pool.stride_h + pool.kernel_h);
}
int WarpgroupTiles::pixel_cols(const ConvShape& shape, int cols) {
  const Pool pool = shape.epilogue.pool.value_or(Pool{});
  return saturate_to_int(std::int64_t{cols - 1} * pool.stride_w + pool.kernel_w);
}

int WarpgroupTiles::patch_rows(const ConvShape& shape) const {
  const std::int64_t rows = pixel_rows(shape, tile_rows());
  const std::int64_t read = (rows - 1) * shape.stride_h + std::int64_t{part_rows - 1} * shape.dilation_h;
  return saturate_to_int(read / step_rows(shape) + 1);
}

int WarpgroupTiles::patch_cols(const ConvShape& shape) const {
  const std::int64_t cols = pixel_cols(shape), step = step_cols(shape), pixel = shape.stride_w / step;
  const std::int64_t last = (cols - 1) * shape.stride_w + std::int64_t{part_cols - 1} * shape.dilation_w;
  const std::int64_t read = last / step + 1;
  return saturate_to_int(pixel_rows(shape) == 1 ? read : ceil_div(read, pixel) * pixel);
}

int WarpgroupTiles::group_pixels(const ConvShape& shape) const {
  const int rows = shape.stride_h / step_rows(shape), cols = shape.stride_w / step_cols(shape);
  const std::int64_t row_pixels = std::int64_t{rows} * patch_cols(shape) / cols;
  return saturate_to_int(std::int64_t{pixel_rows(shape) - 1} * row_pixels + pixel_cols(shape));
}

TensorBox chunk_box(const ConvShape& shape, int chunk_channels, const ChunkRectangle& rectangle) {
  const int chunk_octets = chunk_channels / kOctetChannels;
  const auto group_octets = static_cast<int>(ceil_div(shape.channels_per_group(), kOctetChannels));
  return {.image_rows = shape.in_h,
          .image_cols = shape.in_w,
          .octets = shape.groups == 1 ? chunk_octets : std::gcd(chunk_octets, group_octets),
          .rows = rectangle.rows,
          .cols = rectangle.cols,
          .step_rows = rectangle.step_rows,
          .step_cols = rectangle.step_cols};
}

bool can_copy(const TensorBox& box) {
  return box.octets <= kMaxBoxExtent && std::int64_t{box.rows} * box.step_rows <= kMaxBoxExtent &&
         std::int64_t{box.cols} * box.step_cols <= kMaxBoxExtent;
}

TensorBox WarpgroupTiles::box(const ConvShape& shape) const {
  return chunk_box(shape, chunk_channels, {patch_rows(shape), patch_cols(shape), step_rows(shape), step_cols(shape)});
}

int WarpgroupTiles::steps(const ConvShape& shape) const {
  return part_rows * part_cols * (chunk_channels / (sparse != 0 ? 32 : 16));
}

std::int64_t WarpgroupTiles::chunks(const ConvShape& shape) const {
  return ceil_div(shape.channels_per_group(), chunk_channels) * count_parts(part(), shape);
}

std::int64_t WarpgroupTiles::activation_bytes(const ConvShape& shape) const {
  return std::int64_t{chunk_channels / kOctetChannels} * patch_rows(shape) * patch_cols(shape) * kLineBytes;
}

std::int64_t WarpgroupTiles::panel_bytes(const ConvShape& shape, int rest_limit) const {
  const std::int64_t weights = std::int64_t{steps(shape)} * kStepBytes;
  if (sparse == 0) return weights;
  const std::int64_t places = ceil_div(steps(shape), 2) * kGroupRows * 2 * kWordBytes;
  return weights + places + kGroupWarps * (kWordBytes + std::int64_t{rest_limit} * kRestStepBytes);
}

std::int64_t WarpgroupTiles::shared_bytes(const ConvShape& shape, int rest_limit) const {
  const std::int64_t panels = ceil_div(row_groups * panel_bytes(shape, rest_limit), kLineBytes) * kLineBytes;
  return kSharedReserveBytes + buffers * (activation_bytes(shape) + panels);
}

bool fits(const WarpgroupTiles& tiles, const ConvShape& shape, int rest_limit, const ArchSpec& arch) {
  constexpr std::int64_t kMostGateBytes = (1 << 20) - 1;
  return is_part(tiles.part(), shape) && tiles.groups() <= kMostGroups &&
         tiles.group_pixels(shape) <= kMostGroupPixels && tiles.buffers <= kMostBuffers &&
         (tiles.overlap == 0 || can_overlap(tiles)) && can_copy(tiles.box(shape)) &&
         tiles.steps(shape) <= (tiles.sparse != 0 ? kMostSparseSteps : kMostUnrolledSteps) &&
         rest_limit <= kMostRestSteps && tiles.chunk_channels % (tiles.sparse != 0 ? 32 : 16) == 0 &&
         tiles.image_groups <= kMostImageGroups && tiles.set_blocks <= tiles.tiles(shape) &&
         thread_registers(tiles, shape) <=
             std::min(arch.max_registers_per_thread,
                      most_registers(arch.registers_per_multiprocessor, tiles.threads() / kWarpSize)) &&
         tiles.shared_bytes(shape, rest_limit) <= std::min<std::int64_t>(arch.max_shared_per_block, kMostGateBytes) &&
         resident_of(tiles, shape, rest_limit, arch) >= 1;
}

bool has_warpgroup_tiles(const ConvShape& shape, int batch, const ArchSpec& arch) {
  WarpgroupTiles smallest{.image_groups = image_groups_for(batch)};
  int narrowest = 0;
  for (int across = 1; across <= shape.out_w(); ++across) {
    smallest.tile_cols = static_cast<int>(ceil_div(shape.out_w(), across));
    if (across > 1 && is_too_narrow(smallest, shape)) break;
    narrowest = smallest.tile_cols;
  }
  smallest.tile_cols = narrowest;
  return narrowest > 0 && fits(smallest, shape, 0, arch);
}

double predict(const WarpgroupTiles& tiles, const ConvShape& shape, double density, int batch, const ArchSpec& arch) {
  // Clocks of a multiprocessor at its full clock, fitted to 98 kernels on an H100: 11 % off in the mean. What operands
  // of a step take is what shared memory gives a clock, which those kernels hardly waited for.
  constexpr double kPixelClocks = 4, kSparsePixelClocks = 9, kStepClocks = 3;  // of a step of a warpgroup
  constexpr double kWeightClocks = 16, kActivationClocks = 2;  // of a step's operands in shared memory, and of a pixel
  constexpr double kStepLatency = 97, kSparseStepLatency = 390;  // steps of a warpgroup follow each other
  constexpr double kRestPixelClocks = 3;                         // of a step of the rest of four warps
  constexpr double kIntakeBytesPerClock = 64, kIntakeLatency = 600;
  // A copy takes them, however short, and a chunk. The fit was to kernels that copied a patch row by row: that a box
  // costs as much as a row is an estimate, and so is what a warpgroup gains that does not wait for its products.
  constexpr double kCopyClocks = 56, kFillClocks = 440, kDrainClocks = 60;
  constexpr double kLineClocks = 3.75, kResidualLines = 1.7, kTileClocks = 2800;  // of 128 bytes; of a tile
  // Of a position of a window, for each of a thread's four values; as many instructions, measured nowhere.
  constexpr double kWindowClocks = 4;
  const auto blocks = static_cast<double>(std::int64_t{tiles.sets(shape)} * tiles.set_blocks *
                                          ceil_div(batch, std::int64_t{kOctetImages} * tiles.image_groups));
  const int limit = rest_limit_of_chunk(tiles, shape, density);
  const double of_multiprocessor = std::ceil(blocks / arch.multiprocessors);
  const double resident = std::min<double>(of_multiprocessor, std::max(1, resident_of(tiles, shape, limit, arch)));
  const double pixels = tiles.group_pixels(shape);
  // Where one warpgroup gathers its rest, or stores, others multiply.
  const double alone = 1.0 / (tiles.groups() * resident);
  const double rest = pixels * rest_steps_of_chunk(tiles, shape, density) * kRestPixelClocks * (0.4 + 0.6 * alone);
  const double products = pixels * (tiles.sparse != 0 ? kSparsePixelClocks : kPixelClocks);
  const double step = std::max(products, kWeightClocks + pixels * kActivationClocks) + kStepClocks;
  const double latency = (tiles.sparse != 0 ? kSparseStepLatency : kStepLatency) + pixels;
  const double multiplying =
      std::max(tiles.groups() * (tiles.steps(shape) * step + rest), tiles.steps(shape) * latency);
  const double busy = multiplying - tiles.overlap * kDrainClocks * alone;
  const auto bytes =
      static_cast<double>(tiles.activation_bytes(shape) + tiles.row_groups * tiles.panel_bytes(shape, limit));
  const double intake = bytes / kIntakeBytesPerClock;
  const double waiting = (kIntakeLatency + intake) / (tiles.buffers - 1 - tiles.overlap) / resident;
  // Boxes, and the weights.
  const double copies = tiles.chunk_channels / kOctetChannels / tiles.box(shape).octets + 1;
  const double chunk = std::max({busy, intake, waiting, copies * kCopyClocks + kFillClocks / resident});
  const double stored = static_cast<double>(tiles.tile_rows()) * tiles.tile_cols;
  const double added = shape.epilogue.residual
                           ? static_cast<double>(tiles.pixel_groups) * tiles.pixel_rows(shape) * tiles.pixel_cols(shape)
                           : 0;
  const double lines = tiles.block_rows() / kOctetChannels * (stored + kResidualLines * added);
  const double windows = shape.epilogue.pool ? tiles.row_groups * stored * window_positions(*shape.epilogue.pool) : 0;
  const double end = lines * kLineClocks * (0.5 + 0.5 * alone) + windows * kWindowClocks + kTileClocks / resident;
  const double reading = share_that_reads(tiles.part(), shape, WarpgroupTiles::pixel_rows(shape, tiles.tile_rows()),
                                          tiles.pixel_cols(shape));
  const double tile = static_cast<double>(tiles.chunks(shape)) * reading * chunk + end;
  const double of_block = static_cast<double>(ceil_div(tiles.tiles(shape), tiles.set_blocks));
  return launch_time_us({.busy_us = clocks_us(of_multiprocessor * of_block * tile, arch),
                         .blocks = of_multiprocessor,
                         .resident = resident,
                         .waits = kConvolutionWaits,
                         .activation_bytes = activation_bytes(shape, batch) / 2},
                        arch);
}

std::vector<WarpgroupTiles> choose_warpgroup(const ConvShape& shape, double density, int batch, const ArchSpec& arch) {
  return WarpgroupSearch(shape, density, batch, arch).run();
}

}  // namespace burin
