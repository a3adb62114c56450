// The float64 reference: a naive convolution that everything is compared with.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ir/conv_layer.h"

namespace burin {

// NCHW. `residual` is empty unless the layer has one. Zero weights are skipped; sums are exact to float64.
std::vector<double> reference_convolution(const ConvLayer& layer, int batch, std::span<const float> input,
                                          std::span<const float> residual);

// What the rounding of an output can grow with: sum |w x| + |bias| + |residual| before the activation, times the
// activation's largest slope; for sigmoid and silu also the output itself, since they round on their own. The tolerance
// of an element scales with it.
std::vector<double> reference_magnitude(const ConvLayer& layer, int batch, std::span<const float> input,
                                        std::span<const float> residual);

struct Comparison {
  bool within = false;           // every element within its tolerance, none NaN
  double worst_ratio = 0;        // largest |error| / tolerance
  std::int64_t worst_index = 0;  // flat, NCHW
  double worst_value = 0, worst_expected = 0, worst_tolerance = 0;
  double relative_error = 0;  // ||out - ref|| / ||ref||
};

// Tolerance of an element: kToleranceFactor * eps(fp32) * sqrt(terms of the longest reduction + 1) * magnitude, and a
// floor of the smallest normal number.
inline constexpr double kToleranceFactor = 4.0;
Comparison compare(std::span<const float> output, std::span<const double> reference, std::span<const double> magnitude,
                   int longest_reduction);

// "image 3, channel 17, row 0, col 5"
std::string describe_output_index(const ConvShape& shape, std::int64_t index);

// Uniform in [-1, 1] without zero, the same on every machine for a seed: splitmix64, whose state starts at the seed,
// gives 64 bits for each element in turn; their upper 24, read as a number u, give (2u + 1) / 2^24 - 1.
std::vector<float> random_tensor(std::int64_t elements, std::uint64_t seed);

}  // namespace burin
