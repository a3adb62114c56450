#include "compiler/providers/conv_warpgroup_tf32/tiles.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <map>
#include <set>

#include "compiler/launch_time.h"
#include "compiler/providers/conv_warpgroup/packing.h"
#include "compiler/providers/conv_warpgroup/tiles.h"
#include "ir/factor_type.h"
#include "ir/kernel.h"
#include "ir/limits.h"

namespace burin {
namespace {

constexpr int kImages = 4;                                                       // that lie side by side
constexpr int kMostWarpgroups = 4, kMostFilledBuffers = 4, kMostTileSide = 128;  // as the template has them
constexpr int kMostTf32Steps = 72;                                               // that are unrolled
constexpr int kMostGroupsOfImages = 256, kMostBlocks = 1 << 20;
constexpr int kOctetStepWords = kOctetChannels * kOctetChannels;
constexpr std::int64_t kSwizzledBytes = 1024;     // at a multiple of which a buffer begins
constexpr int kLeastCols = 4, kFewestOctets = 2;  // that are proposed

int thread_registers(const WarpgroupFloatTiles& tiles) {
  constexpr int kOthersOfThread = 52;  // what is multiplied and what comes next are 16
  return tiles.output_octets * kOctetChannels + kOthersOfThread;
}

int resident_of(const WarpgroupFloatTiles& tiles, const ConvShape& shape, const ArchSpec& arch) {
  return resident_blocks(tiles.shared_bytes(shape), thread_registers(tiles), tiles.threads(), arch);
}

class FloatSearch {
 public:
  FloatSearch(const ConvShape& shape, int batch, const ArchSpec& arch) : shape_(shape), batch_(batch), arch_(arch) {}

  std::vector<WarpgroupFloatTiles> run() {
    try_part({shape_.kernel_h, shape_.kernel_w});
    for (const FilterPart& part : proposed_parts(shape_, !best_.empty())) try_part(part);
    std::vector<Found> found;
    for (const auto& [kind, best] : best_) found.push_back(best);
    std::ranges::stable_sort(found, {}, &Found::us);
    std::vector<WarpgroupFloatTiles> result;
    for (const Found& each : found) result.push_back(each.tiles);
    return result;
  }

 private:
  struct Found {
    WarpgroupFloatTiles tiles;
    double us = 0;
  };

  void try_part(const FilterPart& part) {
    tiles_.part_rows = part.rows;
    tiles_.part_cols = part.cols;
    for (const int octets : {kFewestOctets, 4, 6, 8, 12, 16}) {
      // Not more than there are, but for the last ones that fill up.
      if (octets > kFewestOctets && (octets - kFewestOctets) * kOctetChannels >= shape_.outputs_per_group()) continue;
      tiles_.output_octets = octets;
      for (const int outputs : {1, 2, 3, 4}) {
        tiles_.output_groups = outputs;
        if (outputs > 1 && (outputs - 1) * tiles_.group_outputs() >= shape_.outputs_per_group()) continue;
        for (const int pixels : {1, 2, 3, 4}) {
          tiles_.pixel_groups = pixels;
          if (tiles_.groups() <= kMostWarpgroups) try_rectangles();
        }
      }
    }
  }

  // As many rows as fit, or one, for each number of columns that divides an image's rows evenly.
  void try_rectangles() {
    const int most = tiles_.pixel_groups * kMostGroupPixels;
    int last = 0;
    for (std::int64_t across = 1; across <= shape_.out_w(); ++across) {
      const auto cols = static_cast<int>(ceil_div(shape_.out_w(), across));
      if (cols == last || cols > kMostTileSide) continue;
      last = cols;
      tiles_.tile_cols = cols;
      const int fit = most_rows(most / tiles_.pixel_cols(shape_));
      if (fit == 0) continue;
      if (tiles_.pixel_cols(shape_) < kLeastCols && across > 1) break;
      // The same number of tiles below each other.
      const auto rows = static_cast<int>(ceil_div(shape_.out_h(), ceil_div(shape_.out_h(), fit)));
      for (const int each : std::set{rows, 1}) {
        tiles_.tile_rows = each;
        // Else fewer warpgroups would have all pixels.
        if (tiles_.pixels(shape_) > most - kMostGroupPixels) try_chunks();
      }
    }
  }
  // What a tile stores at most that has so many rows of the convolution's pixels.
  int most_rows(int pixel_rows) const {
    const Pool pool = shape_.epilogue.pool.value_or(Pool{});
    if (pixel_rows < pool.kernel_h) return 0;
    return std::min({(pixel_rows - pool.kernel_h) / pool.stride_h + 1, shape_.out_h(), kMostTileSide});
  }

  void try_chunks() {
    for (const int channels : {8, 16, 32, 64}) {
      if (channels > 8 && channels / 2 >= shape_.channels_per_group()) continue;
      tiles_.chunk_channels = channels;
      for (int buffers = 2; buffers <= kMostFilledBuffers; ++buffers) {
        tiles_.buffers = buffers;
        try_blocks();
      }
    }
  }

  // As many blocks as run at the same time, in whole waves.
  void try_blocks() {
    tiles_.image_groups = static_cast<int>(std::min<std::int64_t>(ceil_div(batch_, kImages), kMostGroupsOfImages));
    tiles_.set_blocks = 1;
    if (!fits(tiles_, shape_, arch_)) return;
    const std::int64_t tiles = tiles_.tiles(shape_);
    const std::int64_t room = std::max<std::int64_t>(
        1, std::int64_t{arch_.multiprocessors} * resident_of(tiles_, shape_, arch_) / tiles_.sets(shape_));
    const std::int64_t rounds = ceil_div(tiles, std::min({room, tiles, std::int64_t{kMostBlocks}}));
    tiles_.set_blocks = static_cast<int>(ceil_div(tiles, rounds));
    const double us = predict(tiles_, shape_, batch_, arch_);
    const std::array<int, 4> kind = {tiles_.output_octets, tiles_.output_groups, tiles_.pixel_groups,
                                     tiles_.chunk_channels};
    const auto [place, is_new] = best_.try_emplace(kind);
    if (is_new || us < place->second.us) place->second = {tiles_, us};
  }

  const ConvShape& shape_;
  int batch_;
  const ArchSpec& arch_;
  WarpgroupFloatTiles tiles_;
  // The best of each kind: it has octets and warpgroups of outputs, warpgroups of pixels, and channels of a chunk.
  std::map<std::array<int, 4>, Found> best_;
};

// With an odd number of octets, a tile's first one would go to where the last one of the tile before may still be read.
bool has_alternating_windows(const WarpgroupFloatTiles& tiles, const ConvShape& shape) {
  return !shape.epilogue.pool || tiles.output_octets % 2 == 0;
}

// What pixels read of an axis: `pixels` of them.
int patch_extent(int pixels, int kernel, int stride, int dilation, int step) {
  const std::int64_t read = std::int64_t{pixels - 1} * stride + std::int64_t{kernel - 1} * dilation;
  return saturate_to_int(read / step + 1);
}

}  // namespace

int WarpgroupFloatTiles::threads() const { return (groups() * kGroupWarps + 1) * kWarpSize; }
int WarpgroupFloatTiles::group_outputs() const { return output_octets * kOctetChannels; }

int WarpgroupFloatTiles::step_rows(const ConvShape& shape) const {
  return step_of_axis(part_rows, shape.stride_h, shape.dilation_h);
}
int WarpgroupFloatTiles::step_cols(const ConvShape& shape) const {
  return step_of_axis(part_cols, shape.stride_w, shape.dilation_w);
}

int WarpgroupFloatTiles::pixel_rows(const ConvShape& shape) const {
  return WarpgroupTiles::pixel_rows(shape, tile_rows);
}
int WarpgroupFloatTiles::pixel_cols(const ConvShape& shape) const {
  return WarpgroupTiles::pixel_cols(shape, tile_cols);
}

int WarpgroupFloatTiles::patch_rows(const ConvShape& shape) const {
  return patch_extent(pixel_rows(shape), part_rows, shape.stride_h, shape.dilation_h, step_rows(shape));
}
int WarpgroupFloatTiles::patch_cols(const ConvShape& shape) const {
  return patch_extent(pixel_cols(shape), part_cols, shape.stride_w, shape.dilation_w, step_cols(shape));
}

TensorBox WarpgroupFloatTiles::box(const ConvShape& shape) const {
  TensorBox box =
      chunk_box(shape, chunk_channels, {patch_rows(shape), patch_cols(shape), step_rows(shape), step_cols(shape)});
  box.swizzled = true;
  return box;
}

int WarpgroupFloatTiles::steps(const ConvShape& shape) const {
  return part_rows * part_cols * (chunk_channels / kOctetChannels);
}

std::int64_t WarpgroupFloatTiles::activation_bytes(const ConvShape& shape) const {
  return std::int64_t{chunk_channels / kOctetChannels} * patch_rows(shape) * patch_cols(shape) * kLineBytes;
}

std::int64_t WarpgroupFloatTiles::panels_bytes(const ConvShape& shape) const {
  return std::int64_t{output_groups} * steps(shape) * output_octets * kOctetStepWords * kWordBytes;
}

std::int64_t WarpgroupFloatTiles::windows_bytes(const ConvShape& shape) const {
  constexpr std::int64_t kOctetsAtOnce = 2;
  return shape.epilogue.pool ? kOctetsAtOnce * groups() * kMostGroupPixels * kLineBytes : 0;
}

std::int64_t WarpgroupFloatTiles::shared_bytes(const ConvShape& shape) const {
  const std::int64_t buffer = ceil_div(activation_bytes(shape) + panels_bytes(shape), kSwizzledBytes) * kSwizzledBytes;
  return kSwizzledBytes + buffers * buffer + windows_bytes(shape);
}

bool fits(const WarpgroupFloatTiles& tiles, const ConvShape& shape, const ArchSpec& arch) {
  constexpr std::int64_t kMostGateBytes = (1 << 20) - 1;
  constexpr int kMostOutputOctets = 16;
  return is_part(tiles.part(), shape) && tiles.groups() <= kMostWarpgroups &&
         tiles.output_octets <= kMostOutputOctets && tiles.pixels(shape) <= tiles.pixel_groups * kMostGroupPixels &&
         has_alternating_windows(tiles, shape) && tiles.buffers <= kMostFilledBuffers &&
         tiles.chunk_channels % kOctetChannels == 0 && can_copy(tiles.box(shape)) &&
         tiles.steps(shape) <= kMostTf32Steps && tiles.image_groups <= kMostGroupsOfImages &&
         tiles.set_blocks <= tiles.tiles(shape) &&
         thread_registers(tiles) <=
             std::min(arch.max_registers_per_thread,
                      most_registers(arch.registers_per_multiprocessor, tiles.threads() / kWarpSize)) &&
         tiles.shared_bytes(shape) <= std::min<std::int64_t>(arch.max_shared_per_block, kMostGateBytes) &&
         resident_of(tiles, shape, arch) >= 1;
}

bool has_float_tiles(const ConvShape& shape, const ArchSpec& arch) {
  WarpgroupFloatTiles smallest;
  smallest.output_octets = kFewestOctets;
  int narrowest = 0;
  for (std::int64_t across = 1; across <= shape.out_w(); ++across) {
    smallest.tile_cols = static_cast<int>(ceil_div(shape.out_w(), across));
    if (across > 1 && smallest.pixel_cols(shape) < kLeastCols) break;
    narrowest = smallest.tile_cols;
  }
  smallest.tile_cols = narrowest;
  smallest.pixel_groups = saturate_to_int(ceil_div(smallest.pixels(shape), kMostGroupPixels));
  return fits(smallest, shape, arch);
}

double predict(const WarpgroupFloatTiles& tiles, const ConvShape& shape, int batch, const ArchSpec& arch) {
  // Clocks of a multiprocessor, fitted to 536 kernels of 14 layers on an H100: 7 % off in the mean. Of a step of a
  // warpgroup: what is multiplied, for each octet of output channels; loads from shared memory, of the weights for each
  // of them and of the pixels; what nothing else of the warpgroup covers; of a chunk.
  constexpr double kOctetClocks = 8, kOctetLoadClocks = 5.5, kLoadClocks = 44, kUncoveredClocks = 22;
  constexpr double kChunkClocks = 180, kFewestChunkClocks = 65;
  constexpr double kIntakeBytesPerClock = 100, kIntakeLatency = 1600;
  constexpr double kLineClocks = 6.2, kResidualLines = 1.7;  // of 128 bytes; loads are an estimate
  // Estimates, of a line of shared memory that a pool stores or reads, and of an octet's barrier.
  constexpr double kWindowLineClocks = 1.5, kBarrierClocks = 60;
  const auto blocks = static_cast<double>(std::int64_t{tiles.sets(shape)} * tiles.set_blocks *
                                          ceil_div(batch, std::int64_t{kImages} * tiles.image_groups));
  const double of_multiprocessor = std::ceil(blocks / arch.multiprocessors);
  const double resident = std::min<double>(of_multiprocessor, std::max(1, resident_of(tiles, shape, arch)));
  const double alone = 1.0 / (tiles.groups() * resident);
  const double octets = tiles.output_octets;
  const double step = std::max(octets * kOctetClocks, octets * kOctetLoadClocks + kLoadClocks);
  const double multiplying =
      tiles.steps(shape) * std::max(tiles.groups() * step, (step + kUncoveredClocks) / resident) +
      kChunkClocks / resident;
  const auto bytes = static_cast<double>(tiles.activation_bytes(shape) + tiles.panels_bytes(shape));
  const double intake = bytes / kIntakeBytesPerClock;
  const double waiting = (kIntakeLatency + intake) / (tiles.buffers - 1) / resident;
  const double chunk = std::max({multiplying, intake, waiting, kFewestChunkClocks / resident});
  const double stored = static_cast<double>(tiles.tile_rows) * tiles.tile_cols;
  const double added = shape.epilogue.residual ? kResidualLines * tiles.pixels(shape) : 0;
  const double lines = tiles.output_groups * octets * (stored + added);
  double end = lines * kLineClocks * (0.5 + 0.5 * alone);
  if (shape.epilogue.pool) {
    const Pool& pool = *shape.epilogue.pool;
    const double read = tiles.output_groups * stored * pool.kernel_h * pool.kernel_w;
    end += octets * ((tiles.groups() * kMostGroupPixels + read) * kWindowLineClocks + kBarrierClocks / resident);
  }
  const double reading = share_that_reads(tiles.part(), shape, tiles.pixel_rows(shape), tiles.pixel_cols(shape));
  const double tile = static_cast<double>(tiles.chunks(shape)) * reading * chunk + end;
  const double of_block = static_cast<double>(ceil_div(tiles.tiles(shape), tiles.set_blocks));
  return launch_time_us({.busy_us = clocks_us(of_multiprocessor * of_block * tile, arch),
                         .blocks = of_multiprocessor,
                         .resident = resident,
                         .waits = kConvolutionWaits,
                         .activation_bytes = activation_bytes(shape, batch)},
                        arch);
}

std::vector<WarpgroupFloatTiles> choose_warpgroup_floats(const ConvShape& shape, int batch, const ArchSpec& arch) {
  return FloatSearch(shape, batch, arch).run();
}

std::int64_t packed_words(const ConvShape& shape, const WarpgroupFloatTiles& tiles) {
  const std::int64_t sets = tiles.sets(shape);
  return sets * tiles.chunks(shape) * tiles.panels_bytes(shape) / kWordBytes + sets * tiles.block_outputs();
}

std::vector<std::uint32_t> pack_warpgroup_floats(const ConvLayer& layer, const ConvShape& shape,
                                                 const WarpgroupFloatTiles& tiles) {
  std::vector<std::uint32_t> words(static_cast<std::size_t>(packed_words(shape, tiles)));
  const int positions = tiles.part_rows * tiles.part_cols, outputs = shape.outputs_per_group();
  const int parts = count_parts(tiles.part(), shape);
  const std::int64_t steps = tiles.steps(shape), chunks = tiles.chunks(shape);
  const std::int64_t first_bias = std::int64_t{tiles.sets(shape)} * chunks * tiles.panels_bytes(shape) / kWordBytes;
  for (int output = 0; output < shape.out_channels; ++output) {
    const int of_group = output % outputs;
    const std::int64_t set =
        std::int64_t{output / outputs} * tiles.output_blocks(shape) + of_group / tiles.block_outputs();
    const int of_set = of_group % tiles.block_outputs(), of_panel = of_set % tiles.group_outputs();
    // Columns of eight channels are 0, 4, 1, 5, ...
    const int channel = of_panel % kOctetChannels, column = channel % 4 * 2 + channel / 4;
    for (int c = 0; c < shape.channels_per_group(); ++c) {
      // Rows of eight channels are 0, 2, 4, 6, 1, ...
      const int octet = c % tiles.chunk_channels / kOctetChannels, of_octet = c % kOctetChannels;
      const int k = of_octet / 2 + of_octet % 2 * 4;
      for (int position = 0; position < shape.kernel_h * shape.kernel_w; ++position) {
        const int row = position / shape.kernel_w, col = position % shape.kernel_w;
        const PartPosition at = part_position(tiles.part(), shape, row, col);
        const std::int64_t chunk = set * chunks + std::int64_t{c / tiles.chunk_channels} * parts + at.part;
        const std::int64_t panel = chunk * tiles.output_groups + of_set / tiles.group_outputs();
        const std::int64_t step = panel * steps + std::int64_t{octet} * positions + at.position;
        const std::int64_t word = (step * tiles.output_octets + of_panel / kOctetChannels) * kOctetStepWords +
                                  k / 4 * 32 + column * 4 + k % 4;
        const float weight = layer.weight(output, c, row, col);
        words[static_cast<std::size_t>(word)] = std::bit_cast<std::uint32_t>(rounded(FactorType::tf32, weight));
      }
    }
    if (!shape.epilogue.bias) continue;
    words[static_cast<std::size_t>(first_bias + set * tiles.block_outputs() + of_set)] =
        std::bit_cast<std::uint32_t>(layer.bias[static_cast<std::size_t>(output)]);
  }
  return words;
}

}  // namespace burin
