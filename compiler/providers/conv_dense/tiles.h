// How the work of conv_dense.cu is divided into tiles, and what that costs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "compiler/providers/template_provider.h"
#include "compiler/providers/window_tiles.h"
#include "ir/arch.h"
#include "ir/conv_layer.h"
#include "ir/saturate.h"

namespace burin {

// A block's tile has output_threads x 4 * output_quads output channels and pixel_threads x 4 * pixel_quads pixels; each
// split of it has a thread for every 4 * output_quads x 4 * pixel_quads of them. Behind a pool its pixels are those
// that window_rows x window_cols windows read of each of the block's images, and what is left of the tile is empty.
struct ConvDenseTiles : WindowChoice {
  static constexpr int kQuad = 4;

  int output_threads = 1, output_quads = 1, pixel_threads = 1, pixel_quads = 1;
  int splits = 1;
  int chunk_channels = 1, chunk_cols = 1;  // and one row of the filter
  int buffers = 2;
  int block_images = 1;
  int vector = 1;  // activations that one copy brings

  int tile_outputs() const { return kQuad * output_quads * output_threads; }
  int tile_pixels() const { return kQuad * pixel_quads * pixel_threads; }
  // Whole warps: some may have nothing to multiply.
  int threads() const { return static_cast<int>(round_up(splits * output_threads * pixel_threads, kWarpSize)); }
  // Filled up so that all splits have the same.
  int chunk_depth() const { return static_cast<int>(round_up(chunk_channels * chunk_cols, splits)); }
  int shared_bytes() const;
  std::int64_t chunks(const ConvShape& shape) const {
    return ceil_div(shape.channels_per_group(), chunk_channels) * shape.kernel_h * ceil_div(shape.kernel_w, chunk_cols);
  }
  // One group of the convolution has so many.
  std::int64_t output_tiles(const ConvShape& shape) const {
    return ceil_div(shape.outputs_per_group(), tile_outputs());
  }
  std::int64_t pixel_tiles(const ConvShape& shape) const {
    if (shape.epilogue.pool) return windows().tiles_per_image(shape);
    return ceil_div(std::int64_t{block_images} * shape.out_h() * shape.out_w(), tile_pixels());
  }
  // How many pixels windows read, in all images; without a pool each is one.
  std::int64_t pixels_of(const WindowTile& windows, const ConvShape& shape) const {
    const Pool pool = shape.epilogue.pool.value_or(Pool{});
    return block_images * windows.pixel_rows(pool) * windows.pixel_cols(pool);
  }
  std::int64_t image_blocks(const ConvShape& shape) const {
    return shape.groups * output_tiles(shape) * pixel_tiles(shape);
  }
  bool operator==(const ConvDenseTiles&) const = default;
};

// The best tiles by predict(), at least one and up to `count`; no two have as many sums in a thread and as many splits.
// `vector` is 1 or, where four pixels can be copied at once, 4.
std::vector<ConvDenseTiles> choose_tiles(const ConvShape& shape, int batch, int vector, const ArchSpec& arch,
                                         std::size_t count);

// Whether a tile holds a window of the layer's pool, if it has one.
bool can_have_windows(const ConvShape& shape);

// Whether a block can have these tiles.
bool fits(const ConvDenseTiles& tiles, const ConvShape& shape, const ArchSpec& arch);

// The time of one launch in us.
double predict(const ConvDenseTiles& tiles, const ConvShape& shape, int batch, const ArchSpec& arch);

}  // namespace burin
