// How the work of conv_gathered_rows.cu is divided, and what that costs.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/providers/conv_gathered/packing.h"
#include "compiler/providers/conv_gathered/tiles.h"
#include "compiler/providers/window_tiles.h"
#include "ir/activation_zeros.h"
#include "ir/arch.h"
#include "ir/conv_layer.h"
#include "ir/factor_type.h"
#include "ir/saturate.h"

namespace burin {

inline constexpr int kOctetOutputs = 8;  // side by side in a row

// A block has `row_warps` x `octet_warps` x `split_warps` warps, each of which multiplies `warp_tiles` x 16 output
// channels with `warp_octets` octets of its tile of `tile_rows` rows of `tile_octets`. The blocks of a cluster share
// out the input channels; behind a pool there is none. Shapes are gathered_shape()s.
struct RowTiles {
  int warp_tiles = 1, warp_octets = 1;
  int row_warps = 1, octet_warps = 1, split_warps = 1;
  int tile_rows = 1, tile_octets = 1;
  int cluster = 1;
  int sparse = 0;
  int skip_dead = 0;                     // columns of channels that are zero all over the tile
  FactorType factors = FactorType::f16;  // follow from the task

  int octet_bytes() const { return kOctetOutputs * bytes_of(factors); }
  int warps() const { return row_warps * octet_warps * split_warps; }
  int group_rows() const { return warp_tiles * kTileRows; }
  int block_rows() const { return row_warps * group_rows(); }
  int octets() const { return tile_rows * tile_octets; }
  int output_blocks(const ConvShape& shape) const {
    return static_cast<int>(ceil_div(shape.outputs_per_group(), block_rows()));
  }
  int split_channels(const ConvShape& shape) const {
    return static_cast<int>(ceil_div(shape.channels_per_group(), cluster));
  }
  // What is stored of a tile: without a pool its pixels, each a window. None where a window is larger than the tile.
  WindowTile windows(const ConvShape& shape) const;
  int patch_rows(const ConvShape& shape) const;
  int channel_pitch(const ConvShape& shape) const { return shape.kernel_w * patch_rows(shape) * tile_octets | 1; }
  std::int64_t tiles(const ConvShape& shape) const { return windows(shape).tiles_per_image(shape); }
  std::int64_t blocks(const ConvShape& shape) const {  // of an image
    return tiles(shape) * shape.groups * output_blocks(shape) * cluster;
  }
  Packing packing(const ConvShape& shape) const;
  std::int64_t lists_bytes(const ConvShape& shape, int step_limit) const;  // of what is skipped
  std::int64_t shared_bytes(const ConvShape& shape, int step_limit) const;
};

// Whether the template can compute it at all, and whether it has such tiles and a block of them fits a multiprocessor.
bool has_rows(const ConvShape& shape);
bool fits(const RowTiles& tiles, const ConvShape& shape, int step_limit, const ArchSpec& arch);
// Whether inputs can be loaded by fours, as far as their place allows it.
bool loads_fours(const RowTiles& tiles, const ConvShape& shape);

// What a layer's weights and its input say of the columns that are multiplied.
struct RowColumns {
  LiveColumns weights;
  std::optional<ActivationZeros> zeros = {};  // of the input, where they are known
};

double predict(const RowTiles& tiles, const ConvShape& shape, const RowColumns& columns, int batch,
               const ArchSpec& arch);

// The best of each kind, by prediction; how many steps a panel has is estimated. Dead channels are skipped only where
// the input's zeros are known.
std::vector<RowTiles> choose_row_tiles(const ConvShape& shape, const RowColumns& columns, FactorType factors, int batch,
                                       const ArchSpec& arch);

}  // namespace burin
