// Add, Sub, Mul and Div: of two activations, or of an activation and a constant.
#include <algorithm>
#include <cmath>
#include <functional>

#include "compiler/import/onnx/converters.h"
#include "compiler/import/onnx/operands.h"
#include "ir/limits.h"
#include "ir/printable.h"

namespace burin {
namespace {

// A fully connected layer without an activation takes the sum as its bias: so exporters write one for MatMul.
bool add_to_bias(const Node& node, GraphBuilder& graph, int input, const std::vector<float>& values) {
  Operator* const producer = graph.sole_producer(node, input);
  Linear* const linear = producer == nullptr ? nullptr : std::get_if<Linear>(&producer->kind);
  if (linear == nullptr || static_cast<std::size_t>(linear->out_features) != values.size()) return false;
  linear->bias.resize(values.size(), 0.0F);
  for (std::size_t i = 0; i < values.size(); ++i) linear->bias[i] += values[i];
  graph.take_over(node, *producer);
  return true;
}

void combine(const Node& node, GraphBuilder& graph, Combination combination) {
  emit(node, graph, combined(node, graph, Combine{combination}, graph.activation(node, 0), graph.activation(node, 1)));
}

// The constant operand, as it meets the other.
Met read_constant(const Node& node, GraphBuilder& graph, int constant) {
  return met_by_constant(node, graph, constant, graph.activation(node, 1 - constant));
}

// A constant that has neither one value nor one for each channel.
void combine_constant(const Node& node, GraphBuilder& graph, Combination combination, int constant, Met met) {
  emit(node, graph, combined(Combine{combination}, std::move(met), constant == 0));
}

std::optional<std::vector<float>> per_channel(const GraphBuilder& graph, const Met& met) {
  return by_channel(met.constant, graph.shape(met.x)[0]);
}

// The operand that is a constant, when the other is an activation.
std::optional<int> constant_operand_of(const Node& node, const GraphBuilder& graph) {
  if (!graph.is_activation(node, 0)) return 0;
  if (!graph.is_activation(node, 1)) return 1;
  return std::nullopt;
}

}  // namespace

void convert_add(const Node& node, GraphBuilder& graph) {
  const auto constant = constant_operand_of(node, graph);
  if (!constant) return combine(node, graph, Combination::add);
  Met met = read_constant(node, graph, *constant);
  const std::optional<std::vector<float>> shift = per_channel(graph, met);
  if (!shift) return combine_constant(node, graph, Combination::add, *constant, std::move(met));
  if (add_to_bias(node, graph, 1 - *constant, *shift)) return;
  graph.emit(node, ChannelAffine{std::vector<float>(shift->size(), 1.0F), *shift}, {met.x});
}

void convert_sub(const Node& node, GraphBuilder& graph) {
  const auto constant = constant_operand_of(node, graph);
  if (!constant) return combine(node, graph, Combination::subtract);
  Met met = read_constant(node, graph, *constant);
  std::optional<std::vector<float>> shift = per_channel(graph, met);
  if (!shift) return combine_constant(node, graph, Combination::subtract, *constant, std::move(met));
  // x - c, or c - x.
  if (*constant == 1) std::ranges::transform(*shift, shift->begin(), std::negate<>());
  const std::vector<float> scale(shift->size(), *constant == 1 ? 1.0F : -1.0F);
  graph.emit(node, ChannelAffine{scale, *shift}, {met.x});
}

void convert_mul(const Node& node, GraphBuilder& graph) {
  const auto constant = constant_operand_of(node, graph);
  if (!constant) return combine(node, graph, Combination::multiply);
  Met met = read_constant(node, graph, *constant);
  const std::optional<std::vector<float>> scale = per_channel(graph, met);
  if (!scale) return combine_constant(node, graph, Combination::multiply, *constant, std::move(met));
  graph.emit(node, ChannelAffine{*scale, std::vector<float>(scale->size(), 0.0F)}, {met.x});
}

// By a constant, which becomes a product with what divides 1 by it; of a constant, or of two activations.
void convert_div(const Node& node, GraphBuilder& graph) {
  const auto constant = constant_operand_of(node, graph);
  if (!constant) return combine(node, graph, Combination::divide);
  Met met = read_constant(node, graph, *constant);
  ConstantOperand& values = met.constant;
  if (*constant == 0) {
    const bool one = std::ranges::all_of(values.values, [](float value) { return value == 1; });
    if (one && values.values.size() == 1) {
      return graph.emit(node, Elementwise{ElementFunction::reciprocal}, {graph.activation(node, 1)});
    }
    return combine_constant(node, graph, Combination::divide, 0, std::move(met));
  }
  for (float& value : values.values) {
    const auto inverse = static_cast<float>(1.0 / static_cast<double>(value));
    if (!std::isfinite(inverse)) node.bad_input("its divisor {} holds {:g}", in_quotes(node.input(1)), value);
    value = inverse;
  }
  const std::optional<std::vector<float>> scale = per_channel(graph, met);
  if (!scale) return combine_constant(node, graph, Combination::multiply, 1, std::move(met));
  graph.emit(node, ChannelAffine{*scale, std::vector<float>(scale->size(), 0.0F)}, {met.x});
}

}  // namespace burin
