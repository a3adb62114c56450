// How far FP32 arithmetic may be from the float64 reference: of one operator for each of its outputs, and of a whole
// graph.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "compiler/reference.h"
#include "ir/network.h"

namespace burin {

// The most terms that one output of the operator adds up: nonzero weights of a filter, values of a pool's window. 0: it
// only moves values.
int longest_reduction(const Network& network, const Operator& op);

// What an operator's outputs should be on `inputs`, those of `batch` images, and how far each may be off. Operators
// that move or choose values are exact. `arithmetic` is that of the operator's kernel but for its longest reduction.
struct ExpectedOutputs {
  std::vector<double> values, tolerances;
  std::vector<Leeway> leeway = {};  // of each; empty where all inputs are finite, and of operators without weights
};
ExpectedOutputs expected_outputs(const Network& network, const Operator& op, int batch,
                                 const std::vector<std::span<const float>>& inputs, Arithmetic arithmetic);

// Over all paths from an input to an output, the largest sum of longest_reduction() + 1 of the operators on it. The
// errors of operators that follow each other are independent, so that they add up as their squares do.
std::int64_t deepest_reduction(const Network& network);

// The tolerance of an element of the network's output whose largest expected value is `largest` is
// kNetworkToleranceFactor * eps(fp32) * sqrt(deepest reduction) * largest, the factor being a layer's. Measured by the
// largest value and not by each element's own magnitude, it has room for what later layers make of the errors of
// earlier ones: networks of up to 50 layers come to a hundredth of it. What ReLUs, clips and maximum pools leave of
// another tensor (chosen_from()) may be tiny beside what rounding moved it by: then the largest value of that one
// counts.
inline constexpr double kNetworkToleranceFactor = 4.0;
//
// `rounding_share`: what operators round, weights, inputs, sums or outputs, as shares of their terms. Errors
// of several are independent as well, so that it is the root of the sum of their squares. Beside the rest: the factor *
// rounding_share * largest.
double network_tolerance(std::int64_t deepest_reduction, double largest, double rounding_share = 0);

// The tensor that the values of `tensor` were chosen from by ReLUs, clips and maximum pools alone; without those,
// itself.
int chosen_from(const Network& network, int tensor);

}  // namespace burin
