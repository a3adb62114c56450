// The weights of convolutions by Fourier transforms, and what the roundings bring.
#pragma once

#include <vector>

#include "compiler/providers/transformed_convolution.h"
#include "ir/conv_layer.h"

namespace burin {

// Rows and columns of patches.
inline constexpr int kFftSides[] = {8, 16};
// Filters have at least so many rows and columns: smaller ones gain nothing.
inline constexpr int kLeastFftFilter = 3;
// A tile has at least so many rows and columns of outputs.
inline constexpr int kLeastFftTile = 2;

// The sides of patches that filters of this shape may have.
std::vector<int> fft_sides(const ConvShape& shape);

// A filter of so many rows and columns becomes side x side / 2 complex numbers: for each root of x^side = 1 in the
// order of conv_fft.cu, for each root of x^(side / 2) = i, the filter's value at the inverses of both, with the scale
// of the transform back.
FilterTransform fft_filter(int rows, int cols, int side);

// transform_error() of patches of this size.
double fft_error(const ConvLayer& layer, int side);

}  // namespace burin
