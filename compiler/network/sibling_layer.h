// Convolutions with the same input as one layer: its weights, and its name.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/conv_layer.h"

namespace burin {

// Whether the outputs of both are of one size, and computed in one way: with the same steps, activations and pools, and
// without what keeps a convolution from being a part of another one.
bool are_siblings(const ConvShape& a, const ConvShape& b);

// The layer with the output channels of the parts, one part after the other; it has no name. The parts are siblings
// that read the same tensor. Filters lie in the smallest window that has room for all of them, with zeros around.
// Nothing where that is no legal layer, or where it would be zeros for the most part.
std::optional<ConvLayer> layer_of_siblings(const std::vector<const ConvLayer*>& parts);

// Names what was made of several: "fire2.expand1x1+expand3x3". What the names begin with, up to a dot or slash, is said
// once. Names that are too long together become a shorter one that differs for other parts.
std::string joint_name(const std::vector<std::string>& parts);

}  // namespace burin
