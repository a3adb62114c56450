#include "compiler/tune/expected_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "compiler/synthetic_zeros.h"
#include "ir/element_type.h"
#include "ir/error.h"

namespace burin {
namespace {

constexpr std::uint64_t kInputSeed = 1, kResidualSeed = 2, kZerosSeed = 3, kSpoilSeed = 4;

// An output reads one such value of the input, or none, as a rule.
double spoilt_share(const ConvShape& shape) {
  constexpr double kMost = 0.01, kOfWindow = 0.7;
  const double window = static_cast<double>(shape.channels_per_group()) * shape.kernel_h * shape.kernel_w;
  return std::min(kMost, kOfWindow / window);
}

}  // namespace

ExpectedOutput::ExpectedOutput(const ConvLayer& layer, const SparsePattern& pattern, int batch, Precision precision,
                               FactorType factors, const std::optional<ActivationZeros>& zeros, Inputs inputs)
    : layer_(layer), batch_(batch), inputs_(inputs), arithmetic_{.precision = precision} {
  const int count = std::min(batch, inputs == Inputs::finite ? kCheckedImages : kCheckedSpoilt);
  for (int i = 0; i < count; ++i) {
    checked_.push_back(count == 1 ? 0 : static_cast<int>(std::int64_t{i} * (batch - 1) / (count - 1)));
  }
  arithmetic_.longest_reduction = longest_reduction(pattern, layer.shape.epilogue);
  const ElementType element = element_of(precision);
  input_ = rounded(element, random_tensor(layer.shape.input_elements() * batch, kInputSeed));
  if (zeros) imitate_zeros(*zeros, input_, std::int64_t{layer.shape.in_h} * layer.shape.in_w, kZerosSeed);
  if (inputs == Inputs::some_spoilt) spoil(input_, spoilt_share(layer.shape), kSpoilSeed);
  if (layer.shape.epilogue.residual)
    residual_ = rounded(element, random_tensor(layer.shape.conv_elements() * batch, kResidualSeed));
  reference_.emplace(layer, count, checked_images(input_), checked_images(residual_));
  const Arithmetic rounding{.weights = factors == FactorType::f32 ? factors_of(element) : factors, .inputs = factors};
  storage_errors_ = storage_errors(layer, rounding, count, checked_images(input_));
}

std::vector<float> ExpectedOutput::checked_images(std::span<const float> tensor) const {
  std::vector<float> images;
  const std::size_t image = tensor.size() / static_cast<std::size_t>(batch_);
  for (const int i : checked_) {
    const std::span<const float> part = tensor.subspan(static_cast<std::size_t>(i) * image, image);
    images.insert(images.end(), part.begin(), part.end());
  }
  return images;
}

const std::vector<double>& ExpectedOutput::tolerances(const Arithmetic& made_with) {
  const bool stored = made_with.weights != FactorType::f32;
  const auto [known, is_new] = tolerances_.try_emplace({made_with.promote_every, stored, made_with.biases});
  if (is_new) {
    Arithmetic arithmetic = arithmetic_;
    arithmetic.promote_every = made_with.promote_every;
    std::vector<double> errors = stored ? storage_errors_ : std::vector<double>();
    add_bias_errors(layer_, made_with.biases, static_cast<int>(checked_.size()), errors);
    known->second = reference_->tolerances(arithmetic, errors);
  }
  return known->second;
}

ExpectedOutput::Verdict ExpectedOutput::judge(std::span<const float> output, const Arithmetic& made_with) {
  BURIN_CHECK(static_cast<std::int64_t>(output.size()) == elements(), "an output of {} elements instead of {}",
              output.size(), elements());
  const Comparison c = compare(checked_images(output), reference_->outputs(), tolerances(made_with),
                               element_of(arithmetic_.precision), reference_->leeway(made_with));
  Verdict verdict;
  if (!c.within) {
    // The comparison counts the checked images alone.
    const std::int64_t image = layer_.shape.output_elements();
    const std::int64_t index =
        checked_[static_cast<std::size_t>(c.worst_index / image)] * image + c.worst_index % image;
    verdict.fault =
        fmt::format("wrong: {}: {:.8g}, expected {:.8g} +- {:.2g}", describe_output_index(layer_.shape, index),
                    c.worst_value, c.worst_expected, c.worst_tolerance);
    return verdict;
  }
  verdict.error = c.worst_ratio;
  if (inputs_ == Inputs::some_spoilt) return verdict;
  const auto unset = std::find_if(output.begin(), output.end(), [](float value) { return std::isnan(value); });
  if (unset != output.end()) {
    verdict.fault = fmt::format("wrong: {}: not written, or no number",
                                describe_output_index(layer_.shape, unset - output.begin()));
  }
  return verdict;
}

}  // namespace burin
