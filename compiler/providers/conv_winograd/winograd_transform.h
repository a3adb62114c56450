// The weights of Winograd's algorithm, and what its roundings bring.
#pragma once

#include "compiler/providers/transformed_convolution.h"
#include "ir/conv_layer.h"

namespace burin {

// Rows and columns of outputs that a tile may have.
inline constexpr int kWinogradTiles[] = {2, 4};

inline constexpr int kWinogradFilter = 3;
// Rows and columns of what a tile reads.
constexpr int winograd_side(int tile) { return tile + kWinogradFilter - 1; }

// A filter becomes winograd_side()^2 numbers, row by row.
FilterTransform winograd_filter(int tile);

// transform_error() of tiles of this size.
double winograd_error(const ConvLayer& layer, int tile);

}  // namespace burin
