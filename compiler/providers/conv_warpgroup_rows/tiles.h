// How the work of conv_warpgroup_rows.cu is divided, what that costs, and its weights.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/providers/filter_parts.h"
#include "ir/arch.h"
#include "ir/conv_layer.h"
#include "ir/factor_type.h"
#include "ir/saturate.h"

namespace burin {

// What its tensors are: FP32 in planes; places of the halves that are multiplied, which are copied; or places of FP32.
struct RowFormats {
  FactorType factors = FactorType::f16;
  bool reads_halves = false;                          // in places, which are copied as they are
  bool writes_places = false, writes_halves = false;  // a residual is as what is written
  bool writes_last = false;                           // all channels of a pixel behind each other
};

// A block has `row_groups` x `pixel_groups` warpgroups, each of which multiplies 64 output channels with `group_rows`
// rows of `tile_cols` pixels. The blocks of a cluster share out the input channels, and go through theirs in chunks, of
// which `buffers` have their weights in shared memory; a thread stages `items` places of activations at once; where
// there are `staging_warps` beside the warpgroups their threads do, to the same buffers. Shapes are gathered_shape()s.
struct WarpgroupRowTiles {
  int row_groups = 1, pixel_groups = 1;
  int group_rows = 1, tile_cols = 1;
  int chunk_channels = 16, buffers = 1;
  int items = 4;
  int staging_warps = 0;
  int part_rows = 1, part_cols = 1;  // of the filter, that a chunk has
  int cluster = 1;
  RowFormats formats = {};  // follow from the task

  int place_channels() const { return 16 / bytes_of(formats.factors); }
  // Chunks whose activations have a place: one is multiplied, one or two are filled, and one's products may not have
  // ended.
  int staged_chunks() const { return staging_warps > 0 ? buffers : formats.reads_halves ? 4 : 3; }
  int step_channels() const { return 2 * place_channels(); }
  int groups() const { return row_groups * pixel_groups; }
  int threads() const;
  int staging_threads() const;
  FilterPart part() const { return {part_rows, part_cols}; }
  int block_rows() const;
  int tile_rows() const { return pixel_groups * group_rows; }
  // What is stored of it: as many windows of the pool as it has. Without a pool a window is a pixel.
  static int windows(int pixels, int kernel, int stride) {
    return pixels < kernel ? 0 : (pixels - kernel) / stride + 1;
  }
  int stored_rows(const ConvShape& shape) const;
  int stored_cols(const ConvShape& shape) const;
  int output_blocks(const ConvShape& shape) const {
    return static_cast<int>(ceil_div(shape.outputs_per_group(), block_rows()));
  }
  int sets(const ConvShape& shape) const { return shape.groups * output_blocks(shape); }
  std::int64_t tiles(const ConvShape& shape) const {
    return ceil_div(shape.out_h(), stored_rows(shape)) * ceil_div(shape.out_w(), stored_cols(shape));
  }
  std::int64_t blocks(const ConvShape& shape) const {  // of an image
    return tiles(shape) * sets(shape) * cluster;
  }
  // A block has whole chunks.
  int split_channels(const ConvShape& shape) const {
    return static_cast<int>(ceil_div(ceil_div(shape.channels_per_group(), cluster), chunk_channels) * chunk_channels);
  }
  int split_chunks(const ConvShape& shape) const {
    return split_channels(shape) / chunk_channels * count_parts(part(), shape);
  }
  int steps(const ConvShape& shape) const {  // of a chunk
    return part_rows * part_cols * (chunk_channels / step_channels());
  }
  // Places from one row of pixels to the next. Where a tile has whole rows, the padding behind one is also that before
  // the next.
  int pitch(const ConvShape& shape) const;
  int octets(const ConvShape& shape) const;        // of pixels that a warpgroup multiplies, with those between its rows
  int plane_pixels(const ConvShape& shape) const;  // places that are staged of a plane
  int planes(const ConvShape& shape) const;
  std::int64_t panels_bytes(const ConvShape& shape) const;  // of a chunk
  std::int64_t staged_bytes(const ConvShape& shape) const;  // of a chunk
  std::int64_t sums_bytes(const ConvShape& shape) const;
  std::int64_t received_bytes(const ConvShape& shape) const;  // of sums, from the other blocks of the cluster
  std::int64_t filters_bytes(const ConvShape& shape) const;   // of a pool that filters
  std::int64_t filtered_bytes(const ConvShape& shape) const;  // of what it makes, where that becomes places
  std::int64_t shared_bytes(const ConvShape& shape) const;
};

// Whether the template has such tiles, and a block of them fits a multiprocessor.
bool fits(const WarpgroupRowTiles& tiles, const ConvShape& shape, const ArchSpec& arch);
// Whether there are any.
bool has_row_tiles(const ConvShape& shape, const RowFormats& formats, const ArchSpec& arch);

double predict(const WarpgroupRowTiles& tiles, const ConvShape& shape, int batch, const ArchSpec& arch);

// The best of each kind, by prediction.
std::vector<WarpgroupRowTiles> choose_warpgroup_rows(const ConvShape& shape, const RowFormats& formats, int batch,
                                                     const ArchSpec& arch);

// All words that the kernel reads, as it describes them.
std::int64_t packed_words(const ConvShape& shape, const WarpgroupRowTiles& tiles);
std::vector<std::uint32_t> pack_warpgroup_rows(const ConvLayer& layer, const ConvShape& shape,
                                               const WarpgroupRowTiles& tiles);

}  // namespace burin
