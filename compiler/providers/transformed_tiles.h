// How the work of templates/kernels/transformed_tiles.h is divided, and what that costs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "compiler/providers/template_provider.h"
#include "compiler/providers/window_tiles.h"
#include "ir/arch.h"
#include "ir/conv_layer.h"
#include "ir/saturate.h"

namespace burin {

// A way to transform patches, of which a tile's outputs are made.
struct TileTransform {
  int side = 4;  // rows and columns of a patch
  int tile_rows = 2, tile_cols = 2;
  int point_words = 1;     // a point is a real number, or a complex one
  int result_pitch = 2;    // from one row of a tile to the next, where results lie in quads
  bool by_lines = false;   // threads have rows of a patch, and behind a barrier columns; else one has a whole patch
  double patch_cost = 0;   // of a word of a patch, in instructions: load, transform, store, and waiting
  double result_cost = 0;  // of a result, in instructions: transform, bias, activation, store

  int words() const { return side * side; }  // of the points of a patch
  int points() const { return words() / point_words; }
};

// A block has tile_threads x 4 * tile_quads tiles and output_threads x 4 * output_quads outputs; for every `points` of
// the points of a patch it has a thread for each 4 * tile_quads x 4 * output_quads of them. Behind a pool its tiles are
// those that window_rows x window_cols windows read of each of the block's images, and the others are empty.
struct TransformedTiles : WindowChoice {
  static constexpr int kQuad = 4;

  int size = 0;  // which of its provider's transforms it is
  TileTransform transform;
  int points = 1;
  int tile_threads = 1, tile_quads = 1, output_threads = 1, output_quads = 1;
  int slice_channels = 1;
  int vector = 1;  // results that are stored at once
  int cluster_blocks = 1;
  int block_images = 1;

  int block_tiles() const { return kQuad * tile_quads * tile_threads; }
  int block_outputs() const { return kQuad * output_quads * output_threads; }
  // Whole warps: some may have nothing to multiply.
  int threads() const {
    return static_cast<int>(round_up(transform.points() / points * tile_threads * output_threads, kWarpSize));
  }
  int sums_of_thread() const { return points * transform.point_words * kQuad * tile_quads * kQuad * output_quads; }
  int slice_patches() const { return slice_channels * block_tiles(); }
  // Where threads have rows of a patch: how many.
  int thread_rows() const { return static_cast<int>(ceil_div(transform.side, threads() / slice_patches())); }
  int shared_bytes(const ConvShape& shape) const;
  std::int64_t slices(const ConvShape& shape) const { return ceil_div(shape.in_channels, slice_channels); }
  std::int64_t output_blocks(const ConvShape& shape) const { return ceil_div(shape.out_channels, block_outputs()); }
  std::int64_t image_tiles(const ConvShape& shape) const {
    return ceil_div(shape.conv_h(), transform.tile_rows) * ceil_div(shape.conv_w(), transform.tile_cols);
  }
  // How many tiles hold the pixels that windows read, of all images; without a pool each is one.
  std::int64_t tiles_of(const WindowTile& windows, const ConvShape& shape) const {
    const Pool pool = shape.epilogue.pool.value_or(Pool{});
    return block_images * ceil_div(windows.pixel_rows(pool), transform.tile_rows) *
           ceil_div(windows.pixel_cols(pool), transform.tile_cols);
  }
  std::int64_t tile_blocks(const ConvShape& shape) const {
    if (shape.epilogue.pool) return windows().tiles_per_image(shape);
    return ceil_div(block_images * image_tiles(shape), block_tiles());
  }
  std::int64_t image_blocks(const ConvShape& shape) const {
    return output_blocks(shape) * tile_blocks(shape) * cluster_blocks;
  }
  // The words of the weights, without biases.
  std::int64_t panel_words(const ConvShape& shape) const {
    return output_blocks(shape) * slices(shape) * transform.words() * slice_channels * block_outputs();
  }
};

// Whether quads of a tile's rows begin where quads of the image's rows may.
bool has_whole_quads(const TileTransform& transform);

// A provider's transforms for a layer, each with its size.
struct SizedTransform {
  int size = 0;
  TileTransform transform;
};

// The best by predict(), up to `count`, with the transforms in `allowed`; no two have the same transform, tiles and
// outputs of a block, points of a thread and blocks of a cluster. `may_store_quads`: rows of four outputs may be stored
// at once.
std::vector<TransformedTiles> transformed_tiles(const ConvShape& shape, int batch,
                                                std::span<const SizedTransform> allowed, bool may_store_quads,
                                                const ArchSpec& arch, std::size_t count);

// Whether a block can have these tiles.
bool fits(const TransformedTiles& tiles, const ConvShape& shape, const ArchSpec& arch);

// The time of one launch in us.
double predict(const TransformedTiles& tiles, const ConvShape& shape, int batch, const ArchSpec& arch);

}  // namespace burin
