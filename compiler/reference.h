// The float64 reference: a naive convolution that everything is compared with.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "ir/conv_layer.h"
#include "ir/element_type.h"
#include "ir/factor_type.h"
#include "ir/kernel.h"
#include "ir/non_finite_reach.h"
#include "ir/precision.h"
#include "ir/sparse_pattern.h"

namespace burin {

// NCHW. Where a kernel's tensors are of a half type, `input` and `residual` must hold what they can hold (rounded() of
// ir/element_type.h): rounding them is no error of the kernel. `residual` is empty unless the layer has one. Zero
// weights are skipped, whatever they meet; sums are exact to float64. A function of NaN is NaN, and a largest value
// leaves NaN out.
std::vector<double> reference_convolution(const ConvLayer& layer, int batch, std::span<const float> input,
                                          std::span<const float> residual);

// The same of activations that were never rounded: what flows through a whole network in float64.
std::vector<double> reference_convolution_f64(const ConvLayer& layer, int batch, std::span<const double> input,
                                              std::span<const double> residual);

// A pool that does not filter, as an operator and at the end of a convolution: of `values`, so many planes of rows x
// cols, one after the other.
std::vector<double> reference_pool(const Pool& pool, std::int64_t rows, std::int64_t cols,
                                   std::span<const double> values);

double reference_function(const std::optional<Elementwise>& function, double x);

struct Comparison {
  bool within = false;           // every element within its tolerance or leeway, NaN where it is expected alone
  double worst_ratio = 0;        // largest |error| / tolerance
  std::int64_t worst_index = 0;  // flat, NCHW
  double worst_value = 0, worst_expected = 0, worst_tolerance = 0;
  double relative_error = 0;  // ||out - ref|| / ||ref||
};

// How the outputs came about; the tolerance follows from it.
struct Arithmetic {
  Precision precision = Precision::fp32;
  int promote_every = 0;                  // BakedPlan::promote_every
  int longest_reduction = 0;              // terms
  FactorType weights = FactorType::f32;   // what they were rounded to, unless that is part of the precision
  FactorType inputs = FactorType::f32;    // the same, of what a kernel reads in FP32
  ElementType biases = ElementType::f32;  // what they were rounded to
  NonFiniteReach reach = NonFiniteReach::nonzeros;
  bool relu_drops_nan = false;  // whether 0 may come of NaN in a ReLU
};
// How a compiled kernel computes: all but longest_reduction, which the weights say. Throws Error(bad_input) where the
// plan that says it cannot be read.
Arithmetic arithmetic_of(const Kernel& kernel);

// Terms of the longest sum behind an output: nonzeros of a filter, and what an average adds up.
int longest_reduction(const SparsePattern& pattern, const Epilogue& epilogue);

// What an output may be in place of its expected value, where inputs are NaN or infinite.
struct Leeway {
  bool nan = false, infinite = false, zero = false;
  // A largest value may be any between this one and the expected one, as kernels leave NaN out of it.
  double least = std::numeric_limits<double>::infinity();
};

// How far an output may be from `expected`. `magnitude` is what the rounding of a sum can grow with: sum |w x| + |bias|
// + |residual|. The sum of what each rounding may contribute:
// - adding up in FP32: kToleranceFactor * eps(fp32) * sqrt(terms of the longest reduction + 1) * magnitude
// - fp16x2, weights and sums in FP16: kHalfToleranceFactor * eps(f16) * sqrt(terms in one FP16 sum + 1) * magnitude,
// and
//   for each term the smallest number of FP16, below which a product or weight is lost
// - an output in a half type: half of its eps times the output, and half of the type's smallest number
// and at least the smallest normal number of FP32.
inline constexpr double kToleranceFactor = 4.0, kHalfToleranceFactor = 1.0;
double tolerance_of(const Arithmetic& arithmetic, double expected, double magnitude);

// By how much a function's value at `x` may be off where `x` may be off by `error`: how far it moves between x - error
// and x + error, and the rounding of its own.
double function_error(const std::optional<Elementwise>& function, double x, double error);

// What the outputs of a convolution should be on one input, NCHW, and how far they may be off.
class ConvolutionReference {
 public:
  // Nothing of the arguments is kept; they are those of reference_convolution().
  ConvolutionReference(const ConvLayer& layer, int batch, std::span<const float> input,
                       std::span<const float> residual);

  const std::vector<double>& outputs() const { return outputs_; }
  // Each output has the tolerance of its sum, taken through the activation and the pool, so that it is never more than
  // what the activation's range leaves; a pool that filters adds up anew, and has a function of its own. `sum_errors`:
  // what each sum may be off beside its rounding; empty: nothing.
  std::vector<double> tolerances(const Arithmetic& arithmetic, std::span<const double> sum_errors = {}) const;

  // There is one for each output, or none where all inputs are finite.
  std::vector<Leeway> leeway(const Arithmetic& arithmetic) const;

  // Before activation and pool: the sums, and sum |w x| + |bias| + |residual|.
  const std::vector<double>& sums() const { return sums_; }
  const std::vector<double>& magnitudes() const { return magnitudes_; }

 private:
  // The layer without its weights.
  ConvLayer layer_;
  std::vector<double> sums_, magnitudes_, outputs_;
  std::vector<double> added_last_;  // the residual, where it is
  // They say of each sum whether an input that is not finite is in its window, and whether one is in its image and
  // group; empty where all inputs are finite.
  std::vector<bool> in_window_, in_image_;
};

// An output that has become infinite is within its tolerance where the reference is about as large as the largest
// number of `element`, the type that it is stored in. `leeway` is of each output, or empty.
Comparison compare(std::span<const float> output, std::span<const double> reference, std::span<const double> tolerances,
                   ElementType element = ElementType::f32, std::span<const Leeway> leeway = {});

// Adds to `errors`, which has one for each sum of a convolution or is empty, what rounding its bias takes from it: to
// f32 nothing.
void add_bias_errors(const ConvLayer& layer, ElementType rounded_to, int batch, std::vector<double>& errors);

// How far each sum of a convolution may move when its weights, inputs and biases are rounded as `arithmetic` says: what
// rounding takes from each weight, times its input, and from each input, times its weight, without signs, and from the
// bias. Empty where none is.
std::vector<double> storage_errors(const ConvLayer& layer, const Arithmetic& arithmetic, int batch,
                                   std::span<const float> input);

// FP32 outputs that all have the same tolerance.
Comparison compare_within(std::span<const float> output, std::span<const double> reference, double tolerance);

// "image 3, channel 17, row 0, col 5"
std::string describe_output_index(const ConvShape& shape, std::int64_t index);

// Uniform in [-1, 1] without zero, the same on every machine for a seed: splitmix64, whose state starts at the seed,
// gives 64 bits for each element in turn; their upper 24, read as a number u, give (2u + 1) / 2^24 - 1.
std::vector<float> random_tensor(std::int64_t elements, std::uint64_t seed);

// Makes NaN and infinities of a share of the values, and of one at least; which, the seed says.
void spoil(std::span<float> values, double share, std::uint64_t seed);

}  // namespace burin
