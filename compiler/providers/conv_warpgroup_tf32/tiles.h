// How the work of conv_warpgroup_tf32.cu is divided, what that costs, and its weights.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/providers/filter_parts.h"
#include "ir/arch.h"
#include "ir/conv_layer.h"
#include "ir/saturate.h"
#include "ir/tensor_box.h"

namespace burin {

// A block has `output_groups` x `pixel_groups` warpgroups, each of which multiplies `output_octets` x 8 output channels
// with 32 pixels of four images, and a warp that fills `buffers`. `set_blocks` blocks share the tiles of a set of
// output channels: all rectangles of `tile_rows` x `tile_cols` of what is stored of `image_groups` times four images.
struct WarpgroupFloatTiles {
  int output_groups = 1, pixel_groups = 1;
  int output_octets = 8;
  int tile_rows = 1, tile_cols = 32;
  int chunk_channels = 8, buffers = 2;
  int part_rows = 1, part_cols = 1;  // of the filter, that a chunk has
  int image_groups = 1, set_blocks = 1;

  int groups() const { return output_groups * pixel_groups; }
  int threads() const;
  FilterPart part() const { return {part_rows, part_cols}; }
  int group_outputs() const;
  int block_outputs() const { return output_groups * group_outputs(); }
  int output_blocks(const ConvShape& shape) const {
    return static_cast<int>(ceil_div(shape.outputs_per_group(), block_outputs()));
  }
  int sets(const ConvShape& shape) const { return shape.groups * output_blocks(shape); }
  // `shape` is a warpgroup_shape() from here on.
  int step_rows(const ConvShape& shape) const;
  int step_cols(const ConvShape& shape) const;
  // A tile is made of so many pixels of the convolution.
  int pixel_rows(const ConvShape& shape) const;
  int pixel_cols(const ConvShape& shape) const;
  std::int64_t pixels(const ConvShape& shape) const { return std::int64_t{pixel_rows(shape)} * pixel_cols(shape); }
  int patch_rows(const ConvShape& shape) const;
  int patch_cols(const ConvShape& shape) const;
  TensorBox box(const ConvShape& shape) const;
  int steps(const ConvShape& shape) const;  // of a chunk
  std::int64_t chunks(const ConvShape& shape) const {
    return ceil_div(shape.channels_per_group(), chunk_channels) * count_parts(part(), shape);
  }
  std::int64_t image_tiles(const ConvShape& shape) const {
    return ceil_div(shape.out_h(), tile_rows) * ceil_div(shape.out_w(), tile_cols);
  }
  std::int64_t tiles(const ConvShape& shape) const { return image_groups * image_tiles(shape); }
  std::int64_t activation_bytes(const ConvShape& shape) const;  // of a chunk
  std::int64_t panels_bytes(const ConvShape& shape) const;
  std::int64_t windows_bytes(const ConvShape& shape) const;  // where a pool reads
  std::int64_t shared_bytes(const ConvShape& shape) const;
};

// Whether the template has such tiles, and a block of them fits a multiprocessor.
bool fits(const WarpgroupFloatTiles& tiles, const ConvShape& shape, const ArchSpec& arch);

// Whether any tiles are proposed.
bool has_float_tiles(const ConvShape& shape, const ArchSpec& arch);

double predict(const WarpgroupFloatTiles& tiles, const ConvShape& shape, int batch, const ArchSpec& arch);

// The best of each kind, by prediction.
std::vector<WarpgroupFloatTiles> choose_warpgroup_floats(const ConvShape& shape, int batch, const ArchSpec& arch);

// All words that the kernel reads, as it describes them.
std::int64_t packed_words(const ConvShape& shape, const WarpgroupFloatTiles& tiles);
std::vector<std::uint32_t> pack_warpgroup_floats(const ConvLayer& layer, const ConvShape& shape,
                                                 const WarpgroupFloatTiles& tiles);

}  // namespace burin
