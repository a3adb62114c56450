#include "compiler/network/operator_error.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "compiler/network/reference_network.h"
#include "compiler/reference.h"
#include "ir/element_type.h"
#include "ir/error.h"

namespace burin {
namespace {

using Values = std::vector<double>;

int most_nonzeros(std::span<const float> weights, std::size_t rows) {
  const std::size_t length = rows == 0 ? 0 : weights.size() / rows;
  std::ptrdiff_t most = 0;
  for (std::size_t row = 0; row < rows; ++row) {
    const std::span<const float> values = weights.subspan(row * length, length);
    most = std::max(most, std::ranges::count_if(values, [](float weight) { return weight != 0; }));
  }
  return static_cast<int>(most);
}

// The same as a 1x1 convolution of an image of one pixel.
ConvLayer as_convolution(const Linear& linear) {
  ConvLayer layer;
  layer.shape.in_channels = linear.in_features;
  layer.shape.out_channels = linear.out_features;
  layer.shape.epilogue.bias = !linear.bias.empty();
  layer.shape.epilogue.activation = linear.activation;
  layer.shape.epilogue.leaky_slope = linear.leaky_slope;
  layer.weights = linear.weights;
  layer.bias = linear.bias;
  return layer;
}

// What the rounding of an output can grow with, as tolerance_of() takes it.
class Magnitude {
 public:
  // `terms`: of its longest sum.
  Magnitude(const Network& network, const Operator& op, int batch, const std::vector<std::span<const float>>& inputs,
            const Values& expected, int terms)
      : network_(network),
        op_(op),
        batch_(batch),
        inputs_(inputs),
        expected_(expected),
        unit_(tolerance_of({.longest_reduction = terms}, 0, 1)) {}

  Values operator()(const ChannelAffine& op) const {
    ChannelAffine before = op;
    before.then.reset();
    ChannelAffine positive = before;
    for (float& scale : positive.scale) scale = std::abs(scale);
    for (float& shift : positive.shift) shift = std::abs(shift);
    return then(op.then, before, of_positive_inputs(positive));
  }
  Values operator()(const Combine& op) const {
    Combine before = op;
    before.then.reset();
    return then(op.then, before, of_positive_inputs(before));
  }
  Values operator()(const GlobalAveragePool& op) const { return of_positive_inputs(op); }
  Values operator()(const Pool& op) const { return op.kind == PoolKind::max ? exact() : of_positive_inputs(op); }

  Values operator()(const Elementwise& op) const {
    return each([&](double x, double y) { return of_function(op, x, y); });
  }

  // x / d^beta: the power multiplies errors by the logarithm of its result.
  Values operator()(const Lrn&) const {
    return each([](double x, double y) { return y == 0 ? 0.0 : std::abs(y) * (2 + std::abs(std::log(x / y))); });
  }
  // exp(x - largest) / sum: the difference, whose error exp() multiplies, is less than the logarithm of the output.
  Values operator()(const Softmax&) const {
    return each([](double, double y) { return y <= 0 ? 0.0 : y * (1 - std::log(y)); });
  }

  Values operator()(const Resample& op) const {
    if (op.rows.copies() && op.cols.copies()) return exact();
    Resample positive = op;
    for (Taps* taps : {&positive.rows, &positive.cols}) {
      for (float& weight : taps->weights) weight = std::abs(weight);
    }
    positive.outside = std::abs(op.outside);
    return of_positive_inputs(positive);
  }
  Values operator()(const Pick&) const { return exact(); }

  // Of sums: a ConvolutionReference says more of them.
  template <OneOf<Convolution, Linear> Kind>
  Values operator()(const Kind&) const {
    fail_internal(__FILE__, __LINE__, "a sum whose magnitude its reference says");
  }

  template <OneOf<Concat, ChannelView, Pad, Reshape, Transpose, Identity, Convert> Kind>
  Values operator()(const Kind&) const {
    return exact();
  }

 private:
  // What rounding y, the function of x, can grow with.
  static double of_function(const Elementwise& op, double x, double y) {
    switch (op.function) {
      case ElementFunction::relu:
      case ElementFunction::clip:
        return 0.0;
      case ElementFunction::leaky_relu:
        return std::abs(y);
      case ElementFunction::sigmoid:
      case ElementFunction::silu:
        return std::abs(y) * (1 + std::abs(x));  // rounding x is what exp(-x) multiplies
      case ElementFunction::hard_sigmoid:
        return std::abs(op.alpha * x) + std::abs(op.beta);
      case ElementFunction::hard_swish:
        return std::abs(x);
    }
    fail_internal(__FILE__, __LINE__, "an element-wise function without a magnitude");
  }
  // Whether it nowhere falls where it rose before: then it is off the most at the ends of what x may be.
  static bool is_monotone(const Elementwise& op) {
    const bool turns = op.function == ElementFunction::leaky_relu && op.alpha < 0;
    return !turns && op.function != ElementFunction::silu && op.function != ElementFunction::hard_swish;
  }
  // How much larger the function may make what x is off.
  static double steepest(const Elementwise& op) {
    switch (op.function) {
      case ElementFunction::relu:
      case ElementFunction::clip:
      case ElementFunction::sigmoid:
        return 1;
      case ElementFunction::leaky_relu:
        return std::max(1.0, std::abs(static_cast<double>(op.alpha)));
      case ElementFunction::silu:
        return 1.1;
      case ElementFunction::hard_sigmoid:
        return std::abs(op.alpha);
      case ElementFunction::hard_swish:
        return 1.5;
    }
    fail_internal(__FILE__, __LINE__, "an element-wise function without a slope");
  }

  // `magnitudes` are those of what `before` computes, of which there may be a function.
  Values then(const std::optional<Elementwise>& function, const OperatorKind& before, Values magnitudes) const {
    if (!function) return magnitudes;
    std::vector<Values> inputs;
    for (const std::span<const float> input : inputs_) inputs.emplace_back(input.begin(), input.end());
    const Operator op = {op_.name, before, op_.inputs, op_.output};
    const Values x = run_reference_operator(network_, op, batch_, {inputs.begin(), inputs.end()});
    for (std::size_t i = 0; i < magnitudes.size(); ++i) {
      double moved = steepest(*function) * magnitudes[i];
      if (is_monotone(*function)) {
        const double off = unit_ * magnitudes[i], value = reference_element(*function, x[i]);
        const double below = value - reference_element(*function, x[i] - off);
        const double above = reference_element(*function, x[i] + off) - value;
        moved = std::min(moved, std::max(std::abs(below), std::abs(above)) / unit_);
      }
      magnitudes[i] = moved + of_function(*function, x[i], expected_[i]);
    }
    return magnitudes;
  }

  Values exact() const { return Values(expected_.size(), 0.0); }

  template <typename Function>
  Values each(Function function) const {
    Values result(expected_.size());
    for (std::size_t i = 0; i < result.size(); ++i) result[i] = function(inputs_[0][i], expected_[i]);
    return result;
  }

  Values of_positive_inputs(const OperatorKind& kind) const {
    std::vector<Values> positive;
    for (const std::span<const float> input : inputs_) {
      Values& values = positive.emplace_back();
      for (const float x : input) values.push_back(std::abs(x));
    }
    const Operator op = {op_.name, kind, op_.inputs, op_.output};
    return run_reference_operator(network_, op, batch_, {positive.begin(), positive.end()});
  }

  const Network& network_;
  const Operator& op_;
  int batch_;
  const std::vector<std::span<const float>>& inputs_;
  const Values& expected_;
  double unit_;  // what a sum may be off for each of its magnitude
};

const Activations& tensor(const Network& network, int index) {
  return network.tensors[static_cast<std::size_t>(index)];
}

}  // namespace

int longest_reduction(const Network& network, const Operator& op) {
  const std::vector<std::int64_t>& in = tensor(network, op.inputs.at(0)).shape;
  if (const auto* convolution = std::get_if<Convolution>(&op.kind)) {
    const ConvLayer& layer = network.layers[static_cast<std::size_t>(convolution->layer)];
    const std::optional<Pool>& pool = layer.shape.epilogue.pool;
    return most_nonzeros(layer.weights, static_cast<std::size_t>(layer.shape.out_channels)) +
           (pool ? summed_values(*pool) : 0);
  }
  if (const auto* linear = std::get_if<Linear>(&op.kind)) {
    return most_nonzeros(linear->weights, static_cast<std::size_t>(linear->out_features));
  }
  if (const auto* pool = std::get_if<Pool>(&op.kind)) return summed_values(*pool);
  if (std::holds_alternative<GlobalAveragePool>(op.kind)) {
    return static_cast<int>(tensor(network, op.inputs[0]).elements() / in.at(0));
  }
  if (const auto* lrn = std::get_if<Lrn>(&op.kind)) return lrn->size;
  if (std::holds_alternative<Softmax>(op.kind)) return static_cast<int>(in.at(0));
  if (const auto* resample = std::get_if<Resample>(&op.kind)) {
    return resample->rows.copies() && resample->cols.copies() ? 0 : resample->rows.count * resample->cols.count;
  }
  const bool computes = std::holds_alternative<ChannelAffine>(op.kind) || std::holds_alternative<Combine>(op.kind) ||
                        std::holds_alternative<Elementwise>(op.kind);
  return computes ? 1 : 0;
}

ExpectedOutputs expected_outputs(const Network& network, const Operator& op, int batch,
                                 const std::vector<std::span<const float>>& inputs, Arithmetic arithmetic) {
  arithmetic.longest_reduction = longest_reduction(network, op);
  if (const auto* convolution = std::get_if<Convolution>(&op.kind)) {
    const ConvLayer& layer = network.layers[static_cast<std::size_t>(convolution->layer)];
    const ConvolutionReference reference(layer, batch, inputs[0],
                                         inputs.size() > 1 ? inputs[1] : std::span<const float>());
    return {reference.outputs(), reference.tolerances(arithmetic, storage_errors(layer, arithmetic, batch, inputs[0]))};
  }
  if (const auto* linear = std::get_if<Linear>(&op.kind)) {
    const ConvLayer layer = as_convolution(*linear);
    const ConvolutionReference reference(layer, batch, inputs[0], {});
    return {reference.outputs(), reference.tolerances(arithmetic, storage_errors(layer, arithmetic, batch, inputs[0]))};
  }
  std::vector<Values> exact;
  for (const std::span<const float> input : inputs) exact.emplace_back(input.begin(), input.end());
  ExpectedOutputs expected;
  expected.values = run_reference_operator(network, op, batch, {exact.begin(), exact.end()});
  expected.tolerances =
      std::visit(Magnitude(network, op, batch, inputs, expected.values, arithmetic.longest_reduction), op.kind);
  for (std::size_t i = 0; i < expected.values.size(); ++i) {
    expected.tolerances[i] = tolerance_of(arithmetic, expected.values[i], expected.tolerances[i]);
  }
  return expected;
}

std::int64_t deepest_reduction(const Network& network) {
  std::vector<std::int64_t> terms(network.tensors.size(), 0);
  for (const Operator& op : network.operators) {
    std::int64_t before = 0;
    for (const int input : op.inputs) before = std::max(before, terms[static_cast<std::size_t>(input)]);
    terms[static_cast<std::size_t>(op.output)] = before + longest_reduction(network, op) + 1;
  }
  std::int64_t deepest = 0;
  for (const int output : network.outputs) deepest = std::max(deepest, terms[static_cast<std::size_t>(output)]);
  return deepest;
}

double network_tolerance(std::int64_t deepest_reduction, double largest, double rounding_share) {
  const double rounding =
      epsilon_of(ElementType::f32) * std::sqrt(static_cast<double>(deepest_reduction)) + rounding_share;
  const double tolerance = kNetworkToleranceFactor * rounding * largest;
  return std::max(tolerance, static_cast<double>(std::numeric_limits<float>::min()));
}

}  // namespace burin
