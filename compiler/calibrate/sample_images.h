// Images that a network is run on in float64, to see what its tensors hold.
#pragma once

#include <string_view>
#include <vector>

#include "compiler/burin/compiler.hpp"
#include "ir/network.h"

namespace burin {

// Images of each of Network::inputs, in their order, one behind the other.
struct SampleImages {
  std::vector<std::vector<float>> inputs;
  int count = 0;
};

// All inputs of the network have some: those that were given, or random ones. Throws Error for images that do not fit
// it, which names the option that brought them.
SampleImages sample_images(const Network& network, const std::vector<CalibrationInput>& given, std::string_view option);

// Those of one of several graphs, which has some of the network's inputs.
SampleImages images_of(const Network& graph, const Network& network, const SampleImages& images);

}  // namespace burin
