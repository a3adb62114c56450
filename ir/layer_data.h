// The weights and biases of a pruned layer as a package holds them: only what is not zero, once for all kernels that
// were made of it.
//
// Little-endian: the number of nonzeros as 64 bits; for each, in the order of the weights, how many zeros stand before
// it, seven bits a byte, the last byte below 128; the nonzeros as float32; the biases as float32; where the layer's
// pool filters, the filters of all channels as float32, and their biases.
#pragma once

#include <string>
#include <string_view>

#include "ir/conv_layer.h"

namespace burin {

std::string encode_layer(const ConvLayer& layer);

// Throws Error(bad_input) for bytes that are no layer of this shape.
ConvLayer decode_layer(std::string_view bytes, const std::string& name, const ConvShape& shape);

}  // namespace burin
