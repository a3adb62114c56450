// How the work of conv_warpgroup.cu is divided, and what that costs.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/providers/filter_parts.h"
#include "ir/arch.h"
#include "ir/conv_layer.h"
#include "ir/saturate.h"
#include "ir/tensor_box.h"

namespace burin {

// The shape as the kernel sees it: an image whose pixels are read one by one, in their order, is one row, unless it is
// pooled.
ConvShape warpgroup_shape(const ConvShape& shape);

inline constexpr int kMostGroupPixels = 32;  // that a warpgroup multiplies

// What the stride and the dilation are multiples of: nothing is read of what lies between. `kernel`: of a part.
int step_of_axis(int kernel, int stride, int dilation);

// What of the input of a warpgroup_shape() is copied at once, of a chunk's rectangle of so many rows and columns, with
// such steps between them: a group of the convolution begins and ends with a box.
struct ChunkRectangle {
  int rows = 1, cols = 1, step_rows = 1, step_cols = 1;
};
TensorBox chunk_box(const ConvShape& shape, int chunk_channels, const ChunkRectangle& rectangle);
bool can_copy(const TensorBox& box);  // whether the driver knows such boxes

// A block has `row_groups` x `pixel_groups` warpgroups, each of which stores 64 output channels of `group_rows` rows of
// `tile_cols` pixels of eight images, and a warp that fills `buffers`. `set_blocks` blocks share the tiles of a set of
// output channels: all rectangles of pixels of `image_groups` times eight images.
//
// What a warpgroup multiplies are the convolution's pixels in the windows of what it stores. Where the layer has no
// pool these are the same. They are multiplied with a part of the filter at once, `part_rows` x `part_cols`.
struct WarpgroupTiles {
  int row_groups = 1, pixel_groups = 1;
  int group_rows = 1, tile_cols = 1;
  int chunk_channels = 16, buffers = 2;
  int part_rows = 1, part_cols = 1;
  int sparse = 0, overlap = 0;
  int image_groups = 1, set_blocks = 1;

  int groups() const { return row_groups * pixel_groups; }
  int threads() const;
  int block_rows() const;
  FilterPart part() const { return {part_rows, part_cols}; }
  int tile_rows() const { return pixel_groups * group_rows; }
  int output_blocks(const ConvShape& shape) const {
    return static_cast<int>(ceil_div(shape.outputs_per_group(), block_rows()));
  }
  int sets(const ConvShape& shape) const { return shape.groups * output_blocks(shape); }
  // `shape` is a warpgroup_shape() from here on.
  // From one row of the patch to the next: as many rows of the image as all that is read lies apart.
  int step_rows(const ConvShape& shape) const;
  int step_cols(const ConvShape& shape) const;
  // The convolution has so many in the windows of so many rows or columns that are stored; and a warpgroup.
  static int pixel_rows(const ConvShape& shape, int rows);
  static int pixel_cols(const ConvShape& shape, int cols);
  int pixel_rows(const ConvShape& shape) const { return pixel_rows(shape, group_rows); }
  int pixel_cols(const ConvShape& shape) const { return pixel_cols(shape, tile_cols); }
  int patch_rows(const ConvShape& shape) const;
  // Rounded up to a multiple of a pixel's columns where a warpgroup has several rows: all are then equally far apart.
  int patch_cols(const ConvShape& shape) const;
  TensorBox box(const ConvShape& shape) const;
  int group_pixels(const ConvShape& shape) const;  // with those between its rows
  int steps(const ConvShape& shape) const;         // of a chunk
  std::int64_t chunks(const ConvShape& shape) const;
  std::int64_t image_tiles(const ConvShape& shape) const {
    return ceil_div(shape.out_h(), tile_rows()) * ceil_div(shape.out_w(), tile_cols);
  }
  std::int64_t tiles(const ConvShape& shape) const { return image_groups * image_tiles(shape); }
  std::int64_t activation_bytes(const ConvShape& shape) const;  // of a chunk
  std::int64_t panel_bytes(const ConvShape& shape, int rest_limit) const;
  std::int64_t shared_bytes(const ConvShape& shape, int rest_limit) const;
};

// Whether the template has such tiles, and a block of them fits a multiprocessor.
bool fits(const WarpgroupTiles& tiles, const ConvShape& shape, int rest_limit, const ArchSpec& arch);

// Whether there are any.
bool has_warpgroup_tiles(const ConvShape& shape, int batch, const ArchSpec& arch);

// `density`: the share of weights that are not zero.
double predict(const WarpgroupTiles& tiles, const ConvShape& shape, double density, int batch, const ArchSpec& arch);

// The best of each kind, by prediction.
std::vector<WarpgroupTiles> choose_warpgroup(const ConvShape& shape, double density, int batch, const ArchSpec& arch);

}  // namespace burin
