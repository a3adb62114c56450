// Zeros of what the convolutions of a network read.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "compiler/burin/compiler.hpp"
#include "compiler/synthetic_zeros.h"
#include "ir/activation_zeros.h"
#include "ir/network.h"

namespace burin {

using LayerZeros = std::map<std::string, ActivationZeros>;  // of the input of each convolution, by its name

// Counted while the network computes in float64 what it makes of these images: every input has some. Throws
// Error(bad_input) for images that do not fit it. `progress` is called with the images that are done and all.
LayerZeros count_zeros(const Network& network, const std::vector<CalibrationInput>& inputs,
                       const std::function<void(int done, int all)>& progress);

// As if all inputs had zeros of this kind.
LayerZeros made_up_zeros(const Network& network, const SyntheticZeros& zeros);

}  // namespace burin
