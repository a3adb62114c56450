// What every candidate for a kernel is run on, and what must come out.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "compiler/reference.h"
#include "ir/activation_zeros.h"
#include "ir/conv_layer.h"
#include "ir/sparse_pattern.h"

namespace burin {

// The same random input for every candidate. Its float64 reference is computed once, for at most kCheckedImages images
// spread over the batch, the first and the last among them.
class ExpectedOutput {
 public:
  static constexpr int kCheckedImages = 8, kCheckedSpoilt = 2;  // the second where some inputs are spoilt

  enum class Inputs { finite, some_spoilt };

  // Input and residual are numbers that the precision's tensors can hold; of the input some are NaN and infinite where
  // that is asked for, so few that many outputs are none, if they do not read all of an image. `factors`, `zeros`: the
  // Task's.
  ExpectedOutput(const ConvLayer& layer, const SparsePattern& pattern, int batch, Precision precision = Precision::fp32,
                 FactorType factors = FactorType::f32, const std::optional<ActivationZeros>& zeros = {},
                 Inputs inputs = Inputs::finite);

  std::span<const float> input() const { return input_; }
  std::span<const float> residual() const { return residual_; }
  std::int64_t elements() const { return layer_.shape.output_elements() * batch_; }

  struct Verdict {
    double error = 0;   // the worst element's, as a share of its tolerance
    std::string fault;  // what is wrong and where; empty: right
  };
  // `output` was filled with NaN before: an image with a NaN left is wrong, whether it is compared or not, unless some
  // inputs are spoilt.
  // `made_with`: how often sums went over to FP32, and what weights, inputs and biases were rounded to. One thread at a
  // time.
  Verdict judge(std::span<const float> output, const Arithmetic& made_with = {});

 private:
  std::vector<float> checked_images(std::span<const float> tensor) const;
  const std::vector<double>& tolerances(const Arithmetic& made_with);

  const ConvLayer& layer_;
  int batch_ = 1;
  Inputs inputs_ = Inputs::finite;
  Arithmetic arithmetic_;
  std::vector<int> checked_;  // images, ascending
  std::vector<float> input_, residual_;
  std::optional<ConvolutionReference> reference_;  // of the checked images
  std::vector<double> storage_errors_;             // of weights in the type of the tensors, or of factors
  // They are known by promote_every, by whether weights are rounded, and by what biases are rounded to.
  std::map<std::tuple<int, bool, ElementType>, std::vector<double>> tolerances_;
};

}  // namespace burin
