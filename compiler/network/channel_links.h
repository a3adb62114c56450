// Which channels of an operator's inputs and output stand or fall together. A channel is an index of axis 0.
#pragma once

#include <optional>
#include <vector>

#include "ir/network.h"

namespace burin {

// When one of both channels is removed, the other must be.
struct ChannelLink {
  std::size_t input = 0;  // which of the operator's inputs
  int input_channel = 0;
  int output_channel = 0;
};

// Nothing for an operator that mixes channels, so that none of its inputs and output may lose any. A convolution in one
// group and a linear layer have no links but those of a residual: their weights say what they read. A group of a
// grouped convolution is linked as a whole.
std::optional<std::vector<ChannelLink>> channel_links(const Network& network, const Operator& op);

}  // namespace burin
