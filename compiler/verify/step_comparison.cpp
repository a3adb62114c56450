#include "compiler/verify/step_comparison.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <span>
#include <utility>

#include "compiler/execute/executor.h"
#include "compiler/import/faults.h"
#include "compiler/network/operator_error.h"
#include "compiler/providers/provider.h"
#include "compiler/task.h"
#include "ir/element_type.h"
#include "ir/place_values.h"
#include "ir/saturate.h"
#include "ir/template_plan.h"

namespace burin {
namespace {

const Activations& tensor(const Network& network, int index) {
  return network.tensors[static_cast<std::size_t>(index)];
}

std::int64_t words_of(const Program& program, const Place& place) {
  return place.runs * place.run_bytes / program.buffer(place).format.word_bytes();
}

}  // namespace

double rounding_share(const Arithmetic& arithmetic) {
  const double half = epsilon_of(ElementType::f16) / 2;
  double squares = 0;
  for (const FactorType rounded : {arithmetic.weights, arithmetic.inputs}) {
    if (rounded != FactorType::f32) squares += std::pow(epsilon_of(rounded) / 2, 2);
  }
  const ElementType element = element_of(arithmetic.precision);
  if (element != ElementType::f32) squares += std::pow(epsilon_of(element) / 2, 2);
  // Weights are rounded, and sums of so many terms.
  if (arithmetic.precision == Precision::fp16x2) squares += half * half * (2.0 + arithmetic.promote_every);
  return std::sqrt(squares);
}

std::vector<Arithmetic> arithmetic_of(const ManifestIndex& kernels, const Program& program) {
  std::vector<Arithmetic> steps;
  for (const Step& of : program.steps) {
    const Kernel& kernel = kernels.kernel(of.kernel);
    Arithmetic& step = steps.emplace_back(arithmetic_of(kernel));
    const Provider* const own = find_provider(kernel.own_provider());
    if (own != nullptr) step.reach = std::max(step.reach, own->non_finite_reach());
    // What is no convolution computes in FP32, and rounds what it writes.
    if (!kernel.is_convolution()) step.precision = precision_of(program.buffer(of.writes).format.element);
  }
  return steps;
}

double rounding_share(const std::vector<Arithmetic>& steps) {
  double squares = 0;
  for (const Arithmetic& step : steps) squares += std::pow(rounding_share(step), 2);
  return std::sqrt(squares);
}

StepComparison::StepComparison(const Network& network, const ManifestIndex& kernels, const Program& program, int batch,
                               std::vector<int> images)
    : network_(network),
      program_(program),
      batch_(batch),
      images_(std::move(images)),
      arithmetic_(arithmetic_of(kernels, program)),
      written_(program.buffers.size()) {
  std::map<std::string, const Operator*> by_name;
  for (const Operator& op : network.operators) by_name.emplace(op.name, &op);
  for (const Step& step : program.steps) {
    if (step.is_copy()) {
      operators_.push_back(nullptr);
      continue;
    }
    const auto found = by_name.find(step.name);
    const bool same = found != by_name.end() && kind_name(found->second->kind) == step.kind &&
                      tensor(network, found->second->output).name == step.tensor &&
                      found->second->inputs.size() == step.reads.size();
    if (!same) {
      bad_input(network.source, "has no {} '{}' that makes '{}', which the package was compiled from", step.kind,
                step.name, step.tensor);
    }
    operators_.push_back(found->second);
  }
}

// What the step read must be what was written there last.
std::string StepComparison::changed_input(const Step& step, const std::vector<std::vector<float>>& reads) {
  for (std::size_t i = 0; i < reads.size(); ++i) {
    const Buffer& buffer = program_.buffer(step.reads[i]);
    const std::vector<float>& written = written_[static_cast<std::size_t>(step.reads[i].buffer)];
    if (buffer.home == BufferHome::input || written.empty()) continue;
    if (same_bits(read_place(program_, step.reads[i], static_cast<int>(images_.size()), written), reads[i])) continue;
    return fmt::format("its input {}, in the buffer of {}, was written over since the step that made it", i + 1,
                       buffer.tensor);
  }
  return {};
}

void StepComparison::remember(const Place& place, const std::vector<float>& values) {
  const Buffer& buffer = program_.buffer(place);
  std::vector<float>& written = written_[static_cast<std::size_t>(place.buffer)];
  if (written.empty()) {
    const std::int64_t bytes = program_.bytes(buffer, static_cast<int>(images_.size()));
    written.assign(static_cast<std::size_t>(ceil_div(bytes, kWordBytes)), std::numeric_limits<float>::quiet_NaN());
  }
  write_place(program_, place, static_cast<int>(images_.size()), values, written);
}

StepResult StepComparison::compare_step(const Step& step, const std::vector<std::vector<float>>& reads,
                                        const std::vector<float>& output) const {
  StepResult result;
  const auto index = static_cast<std::size_t>(&step - program_.steps.data());
  const Operator* const op = operators_[index];
  const int count = static_cast<int>(images_.size());
  if (op == nullptr) {
    result.shape = {static_cast<std::int64_t>(output.size()) / count};
    const std::vector<double> expected(reads[0].begin(), reads[0].end());
    result.comparison = compare(output, expected, std::vector<double>(expected.size(), tolerance_of({}, 0, 0)));
    return result;
  }
  result.shape = tensor(network_, op->output).shape;
  std::vector<std::span<const float>> inputs;
  for (std::size_t i = 0; i < reads.size(); ++i) {
    const Activations& input = tensor(network_, op->inputs[i]);
    if (static_cast<std::int64_t>(reads[i].size()) != count * input.elements()) {
      bad_input(network_.source, "'{}' of {} has {} values for an image, of the package's step {}", input.name,
                op->name, input.elements(), reads[i].size() / images_.size());
    }
    inputs.emplace_back(reads[i]);
  }
  const Arithmetic& arithmetic = arithmetic_[index];
  const ExpectedOutputs expected = expected_outputs(network_, *op, count, inputs, arithmetic);
  if (expected.values.size() != output.size()) {
    bad_input(network_.source, "{} makes {} values of an image, the package's step {}", op->name,
              expected.values.size() / images_.size(), output.size() / images_.size());
  }
  result.longest_reduction = longest_reduction(network_, *op);
  result.comparison =
      compare(output, expected.values, expected.tolerances, element_of(arithmetic.precision), expected.leeway);
  return result;
}

void StepComparison::see(const StepValues& values, bool compared) {
  const Step& step = program_.steps[static_cast<std::size_t>(values.step)];
  const Tensors reads = pick_images(values.reads, batch_, images_);
  const std::vector<float> output = pick_images(values.output, batch_, images_);
  BURIN_CHECK(static_cast<std::int64_t>(values.output.size()) == batch_ * words_of(program_, step.writes) ||
                  program_.buffer(step.writes).format.layout != TensorLayout::nchw,
              "step {}: {} values were seen", step.name, values.output.size());
  if (compared) {
    StepResult result;
    result.fault = changed_input(step, reads);
    if (result.fault.empty()) result.fault = values.fault;
    if (result.fault.empty()) result = compare_step(step, reads, output);
    result.step = values.step;
    result.passed = result.fault.empty() && result.comparison.within;
    results_.push_back(std::move(result));
  }
  remember(step.writes, output);
  for (std::size_t i = 0; i < written_.size(); ++i) {
    if (program_.buffers[i].last <= values.step) written_[i] = {};
  }
}

std::string describe_index(const std::vector<std::int64_t>& shape, const std::vector<int>& images, std::int64_t index) {
  const std::int64_t size = values_of(shape);
  const int image = images.at(static_cast<std::size_t>(index / size));
  std::vector<std::int64_t> at(shape.size());
  std::int64_t rest = index % size;
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    at[axis] = rest % shape[axis];
    rest /= shape[axis];
  }
  if (shape.size() == 3) return fmt::format("image {}, channel {}, row {}, col {}", image, at[0], at[1], at[2]);
  if (shape.size() == 1) return fmt::format("image {}, feature {}", image, at[0]);
  return fmt::format("image {}, index {}", image, fmt::join(at, ","));
}

std::string describe_worst(const OutputResult& result, const std::vector<std::int64_t>& shape,
                           const std::vector<int>& images) {
  if (!result.fault.empty()) return result.fault;
  const Comparison& comparison = result.comparison;
  return fmt::format("{}: {:.8g}, expected {:.8g} +- {:.2g}", describe_index(shape, images, comparison.worst_index),
                     comparison.worst_value, comparison.worst_expected, comparison.worst_tolerance);
}

}  // namespace burin
