// Which tensors of a graph lie in nchw8, in halves, where a batch has few images. Convolutions multiply such places as
// they are, and half as many bytes are moved; but fewer kernels know them than know FP32.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "compiler/network/passes.h"
#include "compiler/options.h"
#include "ir/network.h"

namespace burin {

// What the best kernel of a convolution takes that reads the one format and writes the other; infinite where there is
// none. Several threads may ask at once.
using ConvolutionTime =
    std::function<double(const Operator& op, const ConvLayer& layer, const ConvolutionFormats& formats)>;

struct PlaceChoice {
  // The formats of the convolutions that read or write such tensors, by their names; all other tensors are in float32.
  std::map<std::string, ConvolutionFormats> formats;
  bool exact = true;  // no other choice takes less time, by these times
};

// Nothing is converted: a tensor lies so for all who read it, and with what it is a part of, or is added to. Where the
// fewest convolutions have no kernel, the sum of all times is the least, or where tensors hang together in too many
// ways as little as a search found (compiler/choose/least_sum.h). `jobs`: threads.
PlaceChoice choose_places(const Network& network, const LayerPrecisions& precisions, int jobs,
                          const ConvolutionTime& time);

}  // namespace burin
