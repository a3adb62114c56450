#include "compiler/network/operator_error.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "compiler/element_functions.h"
#include "compiler/network/groups.h"
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
  layer.shape.epilogue.function = linear.function;
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
    const Values others = second_operands(op);
    Values magnitudes(expected_.size());
    for (std::size_t i = 0; i < magnitudes.size(); ++i) {
      const double a = op.swapped ? others[i] : inputs_[0][i], b = op.swapped ? inputs_[0][i] : others[i];
      magnitudes[i] = rounding_of(op, a, b, reference_combination(op, a, b));
    }
    return then(op.then, before, std::move(magnitudes));
  }
  Values operator()(const Reduce& op) const {
    const Reduce before{op.statistic, op.axes};
    Values magnitudes = of_positive_inputs(before);
    if (op.statistic == Statistic::largest || op.statistic == Statistic::smallest) magnitudes = exact();
    // It is that of x - largest, whose rounding e^x multiplies, and of the logarithm.
    if (op.statistic == Statistic::log_sum_exp) {
      for (double& magnitude : magnitudes) magnitude = 1 + std::abs(magnitude);
    }
    return then(op.then, before, std::move(magnitudes));
  }
  Values operator()(const Normalize& op) const {
    Normalize before = op, normal = op;
    before.then.reset();
    normal.then.reset();
    normal.scale.reset();
    normal.shift.reset();
    const Values values = values_of(normal), ends = values_of(before);
    const Values scales = op.scale ? repeated(*op.scale) : Values(values.size(), 1.0);
    const Values sizes = op.normalization == Normalization::deviation ? sizes_by_deviation(op) : Values();
    Values magnitudes(expected_.size());
    for (std::size_t i = 0; i < magnitudes.size(); ++i) {
      const double y = values[i];
      double own = 2 * std::abs(y);
      // Where a group hardly deviates, what rounding moves its values by is large beside that.
      if (op.normalization == Normalization::deviation) own = (2 + std::abs(y)) * sizes[i];
      if (op.normalization == Normalization::softmax) own = y <= 0 ? 0.0 : y * (1 - std::log(y));
      if (op.normalization == Normalization::log_softmax) own = 1 + 2 * std::abs(y);
      magnitudes[i] = (own + std::abs(y)) * std::abs(scales[i]) + (op.shift ? std::abs(ends[i]) : 0.0);
    }
    return then(op.then, before, std::move(magnitudes));
  }
  Values operator()(const MatMul& op) const {
    MatMul before = op;
    before.then.reset();
    MatMul positive = before;
    positive.scale = std::abs(op.scale);
    if (positive.constant) {
      for (float& value : positive.constant->values) value = std::abs(value);
    }
    return then(op.then, before, of_positive_inputs(positive));
  }
  Values operator()(const GlobalAveragePool& op) const { return of_positive_inputs(op); }
  Values operator()(const Squeeze& op) const {
    Squeeze positive = op;
    for (float& weight : positive.weights) weight = std::abs(weight);
    return of_positive_inputs(positive);
  }
  // What rounding moves the features by moves what the second layer gives, and the product.
  Values operator()(const Excite& op) const {
    const std::size_t features = static_cast<std::size_t>(op.expand.in_features),
                      images = static_cast<std::size_t>(batch_), parts = inputs_[1].size() / features / images;
    Rounded sums;
    for (std::size_t i = 0; i < images * features; ++i) {
      double sum = op.bias.empty() ? 0.0 : op.bias[i % features], magnitude = std::abs(sum);
      for (std::size_t part = 0; part < parts; ++part) {
        const double added = inputs_[1][(i / features * parts + part) * features + i % features];
        sum += added;
        magnitude += std::abs(added);
      }
      sums.values.push_back(reference_function(op.function, sum));
      sums.magnitudes.push_back(through(op.function, sum, sums.values.back(), magnitude));
    }
    const Rounded gates = after(op.expand, sums);
    Values magnitudes(expected_.size());
    const std::size_t plane = expected_.size() / gates.values.size();
    for (std::size_t i = 0; i < magnitudes.size(); ++i) {
      magnitudes[i] = std::abs(inputs_[0][i]) * gates.magnitudes[i / plane] + std::abs(expected_[i]);
    }
    return magnitudes;
  }
  Values operator()(const Pool& op) const { return op.kind == PoolKind::max ? exact() : of_positive_inputs(op); }

  Values operator()(const Elementwise& op) const {
    return each([&](double x, double y) { return rounding_of(op, x, y); });
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

  // A ConvolutionReference says more of sums.
  template <OneOf<Convolution, Linear> Kind>
  Values operator()(const Kind&) const {
    fail_internal(__FILE__, __LINE__, "a sum whose magnitude its reference says");
  }

  template <OneOf<Concat, ChannelView, Pad, Reshape, Transpose, Identity, Convert> Kind>
  Values operator()(const Kind&) const {
    return exact();
  }

 private:
  // `magnitudes` are those of what `before` computes, of which there may be a function.
  Values then(const std::optional<Elementwise>& function, const OperatorKind& before, Values magnitudes) const {
    if (!function) return magnitudes;
    const Values x = values_of(before);
    for (std::size_t i = 0; i < magnitudes.size(); ++i) {
      magnitudes[i] =
          moved_by(*function, x[i], unit_ * magnitudes[i]) / unit_ + rounding_of(*function, x[i], expected_[i]);
    }
    return magnitudes;
  }

  // Values, and what their rounding can grow with.
  struct Rounded {
    Values values, magnitudes;
  };
  Rounded after(const Linear& linear, const Rounded& input) const {
    const auto in = static_cast<std::size_t>(linear.in_features), out = static_cast<std::size_t>(linear.out_features);
    Rounded result;
    for (std::size_t image = 0; image < input.values.size() / in; ++image) {
      for (std::size_t k = 0; k < out; ++k) {
        double sum = linear.bias.empty() ? 0 : linear.bias[k], magnitude = std::abs(sum);
        for (std::size_t c = 0; c < in; ++c) {
          const double weight = linear.weights[k * in + c], x = input.values[image * in + c];
          sum += weight * x;
          magnitude += std::abs(weight) * (std::abs(x) + input.magnitudes[image * in + c]);
        }
        const double value = reference_function(linear.function, sum);
        result.values.push_back(value);
        result.magnitudes.push_back(through(linear.function, sum, value, magnitude));
      }
    }
    return result;
  }
  // What the magnitude of a sum becomes when a function gives `value` of it.
  double through(const std::optional<Elementwise>& function, double sum, double value, double magnitude) const {
    if (!function) return magnitude;
    return moved_by(*function, sum, unit_ * magnitude) / unit_ + rounding_of(*function, sum, value);
  }

  // What the operator would give on its inputs if it were of this kind.
  Values values_of(const OperatorKind& kind) const {
    std::vector<Values> inputs;
    for (const std::span<const float> input : inputs_) inputs.emplace_back(input.begin(), input.end());
    const Operator op = {op_.name, kind, op_.inputs, op_.output};
    return run_reference_operator(network_, op, batch_, {inputs.begin(), inputs.end()});
  }

  // The second operand of each output.
  Values second_operands(const Combine& op) const {
    Combine sum;
    sum.constant = op.constant;
    std::vector<Values> inputs = {Values(inputs_[0].size(), 0.0)};
    if (!op.constant) inputs.emplace_back(inputs_[1].begin(), inputs_[1].end());
    const Operator alone = {op_.name, sum, op_.inputs, op_.output};
    return run_reference_operator(network_, alone, batch_, {inputs.begin(), inputs.end()});
  }
  Values repeated(const ConstantOperand& numbers) const {
    Combine combine;
    combine.constant = numbers;
    return second_operands(combine);
  }

  // Says of each value how large it and the mean of its group's magnitudes are, in what the group is divided by.
  Values sizes_by_deviation(const Normalize& op) const {
    Values sizes(expected_.size());
    for_each_group(network_.tensors[static_cast<std::size_t>(op_.inputs[0])].shape, batch_, op.axes,
                   [&](std::size_t, const std::vector<std::size_t>& group) {
                     const auto count = static_cast<double>(group.size());
                     double sum = 0, magnitudes = 0, squares = 0;
                     for (const std::size_t i : group) {
                       sum += inputs_[0][i];
                       magnitudes += std::abs(inputs_[0][i]);
                     }
                     for (const std::size_t i : group) squares += std::pow(inputs_[0][i] - sum / count, 2);
                     const double divisor = std::sqrt(squares / count + op.epsilon);
                     for (const std::size_t i : group) {
                       const double size = std::abs(inputs_[0][i]) + magnitudes / count;
                       sizes[i] = divisor == 0 ? 0 : size / divisor;
                     }
                   });
    return sizes;
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

ExpectedOutputs expected_sums(const ConvLayer& layer, int batch, std::span<const float> input,
                              std::span<const float> residual, const Arithmetic& arithmetic) {
  const ConvolutionReference reference(layer, batch, input, residual);
  return {reference.outputs(), reference.tolerances(arithmetic, storage_errors(layer, arithmetic, batch, input)),
          reference.leeway(arithmetic)};
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
  const auto plane = [&] { return static_cast<int>(tensor(network, op.inputs[0]).elements() / in.at(0)); };
  if (std::holds_alternative<GlobalAveragePool>(op.kind)) return plane();
  if (const auto* squeeze = std::get_if<Squeeze>(&op.kind)) {
    return std::min(squeeze->part_pixels, plane()) + std::min(squeeze->part_channels, static_cast<int>(in.at(0)));
  }
  if (const auto* excite = std::get_if<Excite>(&op.kind)) {
    const auto parts = static_cast<int>(tensor(network, op.inputs[1]).shape[0]);
    return std::max(parts,
                    most_nonzeros(excite->expand.weights, static_cast<std::size_t>(excite->expand.out_features)));
  }
  if (const auto* lrn = std::get_if<Lrn>(&op.kind)) return lrn->size;
  if (std::holds_alternative<Softmax>(op.kind)) return static_cast<int>(in.at(0));
  const auto along = [&](const std::vector<int>& axes) {
    std::int64_t values = 1;
    for (const int axis : axes) values *= in.at(static_cast<std::size_t>(axis));
    return static_cast<int>(values);
  };
  if (const auto* reduce = std::get_if<Reduce>(&op.kind)) {
    const bool chooses = reduce->statistic == Statistic::largest || reduce->statistic == Statistic::smallest;
    return chooses ? (reduce->then ? 1 : 0) : along(reduce->axes);
  }
  if (const auto* matmul = std::get_if<MatMul>(&op.kind)) {
    if (matmul->constant && matmul->constant_first) return static_cast<int>(matmul->constant->shape.back());
    return static_cast<int>(ordered(in, matmul->left_order).back());
  }
  if (const auto* normalize = std::get_if<Normalize>(&op.kind)) return along(normalize->axes);
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
    return expected_sums(layer, batch, inputs[0], inputs.size() > 1 ? inputs[1] : std::span<const float>(), arithmetic);
  }
  if (const auto* linear = std::get_if<Linear>(&op.kind)) {
    const ConvLayer layer = as_convolution(*linear);
    return expected_sums(layer, batch, inputs[0], {}, arithmetic);
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

int chosen_from(const Network& network, int tensor) {
  const auto chooses = [](const OperatorKind& kind) {
    if (const Pool* pool = std::get_if<Pool>(&kind)) return summed_values(*pool) == 0;
    const Elementwise* element = std::get_if<Elementwise>(&kind);
    return element != nullptr &&
           (element->function == ElementFunction::relu || element->function == ElementFunction::clip);
  };
  const auto makes_it = [&](const Operator& op) { return op.output == tensor && chooses(op.kind); };
  for (auto maker = std::ranges::find_if(network.operators, makes_it); maker != network.operators.end();
       maker = std::ranges::find_if(network.operators, makes_it)) {
    tensor = maker->inputs[0];
  }
  return tensor;
}

}  // namespace burin
