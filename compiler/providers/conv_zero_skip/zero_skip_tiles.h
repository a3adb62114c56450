// How the work of conv_zero_skip.cu is divided, and what that costs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ir/activation_zeros.h"
#include "ir/arch.h"
#include "ir/conv_layer.h"
#include "ir/saturate.h"

namespace burin {

struct ZeroSkipTiles {
  static constexpr int kMaxPixels = 9, kMaxSumsOfThread = 72;

  int pixels = 1;                          // of a warp: neighbours, or those of a pool's window
  int output_quads = 1, column_lanes = 1;  // quads of outputs of a lane; lanes that have the same ones
  int pixel_warps = 1, split_warps = 1;    // with pixels of their own; with the same pixels and other columns
  int runs = 1;                            // times 32 columns that are looked through at once
  int cluster_blocks = 1;                  // that have the same pixels and other columns
  int at_once = 1;                         // columns of a list that a lane multiplies before it looks for more
  int exact = 0;                           // whether single pixels of a listed column are left out
  int quad_loads = 0;                      // whether four pixels' values are loaded at once

  int tile_outputs() const { return kWarpSize / column_lanes * 4 * output_quads; }
  int warps() const { return pixel_warps * split_warps; }
  int splits() const { return split_warps * cluster_blocks; }
  int shared_bytes() const;
  std::int64_t output_tiles(const ConvShape& shape) const {
    return ceil_div(shape.outputs_per_group(), tile_outputs());
  }
  std::int64_t image_blocks(const ConvShape& shape) const;
  std::int64_t panel_words(const ConvShape& shape) const;  // of all weights
  bool operator==(const ZeroSkipTiles&) const = default;
};

// (Input channel, row, column) of one group's filters.
std::int64_t columns_of(const ConvShape& shape);

// Whether the kernel can compute it at all: a pool's window must be small.
bool can_skip_zeros(const ConvShape& shape);
bool fits(const ZeroSkipTiles& tiles, const ConvShape& shape, const ArchSpec& arch);

// The time of one launch in us, for an input with such zeros.
double predict(const ZeroSkipTiles& tiles, const ConvShape& shape, const ActivationZeros& zeros, int batch,
               const ArchSpec& arch);

// The best by predict(), up to `count`; no two have as many pixels and outputs of a warp and as many splits.
// `quad_loads`: four pixels may be loaded at once.
std::vector<ZeroSkipTiles> zero_skip_tiles(const ConvShape& shape, const ActivationZeros& zeros, int batch,
                                           bool quad_loads, const ArchSpec& arch, std::size_t count);

}  // namespace burin
