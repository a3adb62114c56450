// The weights of Winograd's algorithm, and what its roundings bring.
#pragma once

#include <vector>

#include "ir/conv_layer.h"

namespace burin {

// Rows and columns of outputs that a tile may have.
inline constexpr int kWinogradTiles[] = {2, 4};

inline constexpr int kWinogradFilter = 3;
// Rows and columns of what a tile reads.
constexpr int winograd_side(int tile) { return tile + kWinogradFilter - 1; }

// The transformed filters, computed in float64: for each output, for each input channel, winograd_side()^2 numbers.
std::vector<float> winograd_weights(const ConvLayer& layer, int tile);

// About what the worst output's error will be on random inputs, as a share of the tolerance that is kept by every
// kernel (compiler/reference.h): it says nothing of how weights are distributed, and an error here is that of the whole
// tile. Infinite where an output is the sum of nothing, and what its neighbours read would leave a rounding there.
double winograd_error(const ConvLayer& layer, int tile);

}  // namespace burin
