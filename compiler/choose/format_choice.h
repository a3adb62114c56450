// In which format each tensor of a graph lies, for a batch size: what convolutions, pools and the others take in one
// format or another is weighed against the conversions between them, for the whole graph at once.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "compiler/network/passes.h"
#include "ir/network.h"

namespace burin {

// What is expected of kernels, in microseconds; infinite where there is none. Several threads may ask at once.
struct FormatTimes {
  // It is asked for the best kernel of a convolution that reads the one format and writes the other.
  std::function<double(const Operator& op, const ConvLayer& layer, const OperatorFormats& formats)> convolution;
  // It is asked for another operator, which can_take() such formats and moves something.
  std::function<double(const Network& network, const Operator& op, const OperatorFormats& formats)> other;
  // It is asked for a conversion that there can be (can_convert()), of a tensor of this shape.
  std::function<double(const std::vector<std::int64_t>& shape, const TensorFormat& from, const TensorFormat& to)>
      conversion;
};

// What a convolution may read and write; there is one at least. The first one it has where nothing is chosen.
using FormatWays = std::function<std::vector<OperatorFormats>(const Operator& op, const ConvLayer& layer)>;

struct FormatChoice {
  std::map<std::string, OperatorFormats> formats;  // of all operators, by their names; empty: there is no choice
  double us = 0;      // what the operators that have a choice, and all conversions, are expected to take together
  bool exact = true;  // no other choice takes less time, by these times
};

// Where the fewest operators have no kernel, the sum of all times is the least, or where tensors hang together in too
// many ways as little as a search found (compiler/choose/least_sum.h). A tensor may be converted, into each format
// once, whoever reads it. The parts of a concatenation lie as the whole does. `jobs`: threads.
FormatChoice choose_formats(const Network& network, const FormatWays& ways, int jobs, const FormatTimes& times);

}  // namespace burin
