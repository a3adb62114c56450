// The ways in which the kernel of conv_streamed.cu can divide a convolution, and what they cost.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/arch.h"
#include "ir/conv_layer.h"

namespace burin {

// What a plan is free to choose.
struct ConvStreamed {
  int splits = 1;      // blocks of a cluster, each with its part of the input channels
  int block_rows = 1;  // outputs of a block
  int row_parts = 1;   // strips of an output and split
  bool bulk = false;   // the input comes by one bulk copy

  int split_channels(const ConvShape& shape) const { return shape.in_channels / splits; }
  int row_blocks(const ConvShape& shape) const;  // runs of block_rows outputs: a block each for every split
  int strips() const { return block_rows * row_parts; }
  int warps() const;                               // among which the strips are divided evenly
  int staged_words(const ConvShape& shape) const;  // of a channel
  int margin_words(const ConvShape& shape) const;
  int tail_words(const ConvShape& shape) const;
  int header_words() const;  // of a block's parcel
  std::int64_t shared_bytes(const ConvShape& shape, std::int64_t parcel_words) const;
};

// Whether only those pixels lie in shared memory that a 1x1 filter reads.
bool streams_compact(const ConvShape& shape);

// Whether each output channel's mean is stored instead of its pixels.
bool takes_means(const ConvShape& shape);

// Whether the kernel can compute it at all: no groups, few pixels, no pool that filters.
bool can_stream(const ConvShape& shape, const ArchSpec& arch);

// A block's weights are its parcel: all parcels have the same number of words.
struct ConvStreamedWay {
  ConvStreamed choices;
  std::int64_t parcel_words = 0;
  double predicted_us = 0;
};
// Nothing where a block cannot hold its part of the convolution.
std::optional<ConvStreamedWay> price_streamed(const ConvLayer& layer, const ConvStreamed& choices, int batch,
                                              const ArchSpec& arch);
// All that fit, the best by its predicted time first. `aligned`: the input allows copies of 16 bytes.
std::vector<ConvStreamedWay> streamed_ways(const ConvLayer& layer, int batch, bool aligned, const ArchSpec& arch);

// The parcels of all blocks, `parcel_words` each.
std::vector<std::uint32_t> pack_streamed(const ConvLayer& layer, const ConvStreamed& choices,
                                         std::int64_t parcel_words);

}  // namespace burin
