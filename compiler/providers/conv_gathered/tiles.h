// How the work of conv_gathered.cu is divided, and what that costs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "compiler/providers/conv_gathered/packing.h"
#include "compiler/providers/window_tiles.h"
#include "ir/arch.h"
#include "ir/conv_layer.h"
#include "ir/limits.h"
#include "ir/saturate.h"

namespace burin {

inline constexpr int kOctetImages = 8;  // that lie side by side
inline constexpr int kOctetBytes = 16;

// The shape as the kernel sees it: an image whose pixels are read one by one, in their order, is one row.
ConvShape gathered_shape(const ConvShape& shape);

// A block has `row_warps` x `pixel_warps` x `split_warps` warps, each of which multiplies `warp_tiles` x 16 output
// channels with `warp_pixels` pixels of eight images. `set_blocks` blocks share the tiles of a set of output channels:
// all rectangles of pixels of `octets` times eight images.
struct GatheredTiles {
  int warp_tiles = 1, warp_pixels = 1;
  int row_warps = 1, pixel_warps = 1, split_warps = 1;
  int tile_rows = 1, tile_cols = 1;
  int chunk_channels = kOctetChannels, buffers = 2;  // whole octets of channels
  int carries = 0, sparse = 0;
  int octets = 1, set_blocks = 1;
  int keeps_panels = 0;  // of all chunks, for all tiles of a block
  int exchanges = 1;     // tiles whose residuals are in shared memory at a time

  int threads() const { return row_warps * pixel_warps * split_warps * kWarpSize; }
  int group_rows() const { return warp_tiles * kTileRows; }
  int block_rows() const { return row_warps * group_rows(); }
  int pixels() const { return tile_rows * tile_cols; }
  int ahead() const { return buffers - 1 - carries; }  // chunks that are copied while one is multiplied
  int output_blocks(const ConvShape& shape) const {
    return static_cast<int>(ceil_div(shape.outputs_per_group(), block_rows()));
  }
  int sets(const ConvShape& shape) const { return shape.groups * output_blocks(shape); }
  // `shape` is a gathered_shape() from here on.
  static bool compact(const ConvShape& shape) { return shape.kernel_h == 1 && shape.kernel_w == 1; }
  int patch_rows(const ConvShape& shape) const;
  int patch_cols(const ConvShape& shape) const;
  int patch_pixels(const ConvShape& shape) const { return patch_rows(shape) * patch_cols(shape); }
  int slots(const ConvShape& shape) const;  // pixels that a thread copies of an octet of channels
  // What is stored of a tile: without a pool its pixels, each a window. None where a window is larger than the tile.
  WindowTile windows(const ConvShape& shape) const;
  std::int64_t image_tiles(const ConvShape& shape) const { return windows(shape).tiles_per_image(shape); }
  std::int64_t tiles(const ConvShape& shape) const { return octets * image_tiles(shape); }
  std::int64_t exchange_bytes() const;
  std::int64_t windows_bytes(const ConvShape& shape) const;  // what they are made of
  std::int64_t chunks(const ConvShape& shape) const { return ceil_div(shape.channels_per_group(), chunk_channels); }
  Packing packing(const ConvShape& shape) const;
  std::int64_t shared_bytes(const ConvShape& shape, int step_limit) const;
};

// Whether the template has such tiles, and a block of them fits a multiprocessor.
bool fits(const GatheredTiles& tiles, const ConvShape& shape, int step_limit, const ArchSpec& arch);

// Whether there are such tiles, whatever the weights are: the patch of one pixel, or of one window of a pool, of eight
// channels, twice.
bool has_tiles(const ConvShape& shape, const ArchSpec& arch);

// What of a pattern decides how many steps it takes.
struct LiveColumns {
  std::map<int, int>
      of_groups;        // with a nonzero in the fullest row group, for each number of rows that groups may have
  int of_row = 0;       // the most nonzeros of an output channel
  double mean_row = 0;  // and how many it has in the mean
};
LiveColumns live_columns(const ConvShape& shape, const SparsePattern& pattern);
// Those that a row group multiplies, with slots that stay empty.
double multiplied_columns(const LiveColumns& live, const Packing& packing);

// ---- what templates with steps (steps.h) take of a multiprocessor
std::int64_t to_banks(std::int64_t bytes);  // of shared memory, whole
// A thread has registers for sums, for the weights of two steps, and others.
int step_registers(int warp_tiles, int warp_octets, bool sparse, int others);
int resident_blocks(std::int64_t shared_bytes, int registers, int threads, const ArchSpec& arch);
// Whether the blocks of such clusters, or one alone, can share out sums (templates/kernels/cluster_sums.h).
bool can_share_sums(int cluster, const ArchSpec& arch);

double predict(const GatheredTiles& tiles, const ConvShape& shape, const LiveColumns& live, int batch,
               const ArchSpec& arch);

// The best of each kind, by prediction; how many steps a chunk takes is estimated.
std::vector<GatheredTiles> choose_gathered(const ConvShape& shape, const LiveColumns& live, int batch,
                                           const ArchSpec& arch);

}  // namespace burin
