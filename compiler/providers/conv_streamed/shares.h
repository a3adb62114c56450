// How the kernel of conv_streamed.cu shares out a convolution, and what that costs.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/arch.h"
#include "ir/conv_layer.h"

namespace burin {

struct ConvStreamed {
  int splits = 1;      // blocks of a cluster, each with its part of the input channels
  int block_rows = 1;  // outputs of a block
  int row_parts = 1;   // strips of an output and split
  bool bulk = false;   // the input comes by one bulk copy

  int split_channels(const ConvShape& shape) const { return shape.in_channels / splits; }
  int groups(const ConvShape& shape) const;  // of outputs: a block each for every split
  int strips() const { return block_rows * row_parts; }
  int warps() const;                               // that share the strips evenly
  int staged_words(const ConvShape& shape) const;  // of a channel
  int margin_words(const ConvShape& shape) const;
  int tail_words(const ConvShape& shape) const;
  int header_words() const;  // of a block's share of the weights
  std::int64_t shared_bytes(const ConvShape& shape, std::int64_t share_words) const;
};

// Whether only those pixels lie in shared memory that a 1x1 filter reads.
bool streams_compact(const ConvShape& shape);

// Whether each output channel's mean is stored instead of its pixels.
bool takes_means(const ConvShape& shape);

// Whether the kernel can compute it at all: no groups, few pixels, no pool but of the whole plane's mean.
bool can_stream(const ConvShape& shape, const ArchSpec& arch);

struct ConvStreamedWay {
  ConvStreamed shares;
  std::int64_t share_words = 0;  // of a block's share of the weights
  double predicted_us = 0;
};
// Nothing where the shares do not fit a block.
std::optional<ConvStreamedWay> price_streamed(const ConvLayer& layer, const ConvStreamed& shares, int batch,
                                              const ArchSpec& arch);
// All that fit, the best by its predicted time first. `aligned`: the input allows copies of 16 bytes.
std::vector<ConvStreamedWay> streamed_ways(const ConvLayer& layer, int batch, bool aligned, const ArchSpec& arch);

// The shares of all blocks, `share_words` each.
std::vector<std::uint32_t> pack_streamed(const ConvLayer& layer, const ConvStreamed& shares, std::int64_t share_words);

}  // namespace burin
