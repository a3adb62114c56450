// How the work of conv_winograd.cu is divided, and what that costs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "compiler/providers/conv_winograd/winograd_transform.h"
#include "compiler/providers/template_provider.h"
#include "ir/arch.h"
#include "ir/conv_layer.h"
#include "ir/saturate.h"

namespace burin {

// A block has tile_threads x 4 * tile_quads tiles and output_threads x 4 * output_quads outputs; for every `points` of
// the points of a patch it has a thread for each 4 * tile_quads x 4 * output_quads of them.
struct WinogradTiles {
  static constexpr int kQuad = 4;

  int tile = 2;  // rows and columns of outputs
  int points = 1;
  int tile_threads = 1, tile_quads = 1, output_threads = 1, output_quads = 1;
  int slice_channels = 1;
  int vector = 1;  // results that are stored at once
  int cluster_blocks = 1;
  int block_images = 1;

  int patch_points() const { return winograd_side(tile) * winograd_side(tile); }
  int block_tiles() const { return kQuad * tile_quads * tile_threads; }
  int block_outputs() const { return kQuad * output_quads * output_threads; }
  // Whole warps: some may have nothing to multiply.
  int threads() const {
    return static_cast<int>(round_up(patch_points() / points * tile_threads * output_threads, kWarpSize));
  }
  int sums_of_thread() const { return points * kQuad * tile_quads * kQuad * output_quads; }
  int shared_bytes() const;
  std::int64_t slices(const ConvShape& shape) const { return ceil_div(shape.in_channels, slice_channels); }
  std::int64_t output_blocks(const ConvShape& shape) const { return ceil_div(shape.out_channels, block_outputs()); }
  std::int64_t image_tiles(const ConvShape& shape) const {
    return ceil_div(shape.out_h(), tile) * ceil_div(shape.out_w(), tile);
  }
  std::int64_t image_blocks(const ConvShape& shape) const {
    return output_blocks(shape) * ceil_div(block_images * image_tiles(shape), block_tiles()) * cluster_blocks;
  }
  // The words of the weights, without biases.
  std::int64_t panel_words(const ConvShape& shape) const {
    return output_blocks(shape) * slices(shape) * patch_points() * slice_channels * block_outputs();
  }
};

// The best by predict(), up to `count`, of the tiles in `allowed`; no two have the same tile, points of a thread and
// blocks of a cluster. `may_store_quads`: rows of four outputs may be stored at once.
std::vector<WinogradTiles> winograd_tiles(const ConvShape& shape, int batch, std::span<const int> allowed,
                                          bool may_store_quads, const ArchSpec& arch, std::size_t count);

// Whether a block can have these tiles.
bool fits(const WinogradTiles& tiles, const ArchSpec& arch);

// The time of one launch in us.
double predict(const WinogradTiles& tiles, const ConvShape& shape, int batch, const ArchSpec& arch);

}  // namespace burin
