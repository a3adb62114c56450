// How the work of conv_dense.cu is divided into tiles, and what that costs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ir/arch.h"
#include "ir/conv_layer.h"

namespace burin {

// A block's tile has output_threads x 4 * output_quads output channels and pixel_threads x 4 * pixel_quads pixels; each
// split of it has a thread for every 4 * output_quads x 4 * pixel_quads of them.
struct ConvDenseTiles {
  int output_threads = 1, output_quads = 1, pixel_threads = 1, pixel_quads = 1;
  int splits = 1;
  int chunk_channels = 1, chunk_cols = 1;  // and one row of the filter
  int buffers = 2;
  int block_images = 1;
  int vector = 1;  // activations that one copy brings

  int tile_outputs() const;
  int tile_pixels() const;
  int threads() const;      // whole warps: some may have nothing to multiply
  int chunk_depth() const;  // filled up so that all splits have the same
  int shared_bytes() const;
  std::int64_t chunks(const ConvShape& shape) const;
  std::int64_t output_tiles(const ConvShape& shape) const;  // of one of its groups
  std::int64_t pixel_tiles(const ConvShape& shape) const;
  std::int64_t image_blocks(const ConvShape& shape) const;
  bool operator==(const ConvDenseTiles&) const = default;
};

// The best tiles by predict(), at least one and up to `count`; no two have as many sums in a thread and as many splits.
// `vector` is 1 or, where four pixels can be copied at once, 4.
std::vector<ConvDenseTiles> choose_tiles(const ConvShape& shape, int batch, int vector, const ArchSpec& arch,
                                         std::size_t count);

// Whether a block can have these tiles.
bool fits(const ConvDenseTiles& tiles, const ArchSpec& arch);

// The time of one launch in us.
double predict(const ConvDenseTiles& tiles, const ConvShape& shape, int batch, const ArchSpec& arch);

// What no tiles are predicted to be faster than; takes no search.
double least_conv_dense_us(const ConvShape& shape, int batch, const ArchSpec& arch);

}  // namespace burin
