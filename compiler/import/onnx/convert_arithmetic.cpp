// Add, Sub, Mul and Div: of two activations, of an activation and a constant.
#include <algorithm>
#include <cmath>
#include <functional>

#include "compiler/import/onnx/axes.h"
#include "compiler/import/onnx/converters.h"
#include "compiler/import/onnx/legacy_broadcast.h"
#include "ir/limits.h"
#include "ir/printable.h"

namespace burin {
namespace {

// The constant as one value for each channel of the other operand, an activation whose axes are the batch and then its
// shape. ONNX aligns the axes of both from the last one on and repeats those of extent 1.
std::vector<float> per_channel(const Node& node, GraphBuilder& graph, int input) {
  const std::vector<std::int64_t> shape = graph.shape(graph.activation(node, 1 - input));
  const StoredTensor tensor = graph.constant(node, input, "operand");
  const std::size_t rank = shape.size() + 1;
  std::vector<std::int64_t> extents = tensor.shape();
  // Before opset 7 the second operand alone is repeated.
  if (input == 1) {
    std::vector<std::int64_t> first = with_batch(shape);
    if (extents.size() == rank) first[0] = extents[0];
    extents = aligned_shape(node, first, std::move(extents));
  }
  bool fits = extents.size() <= rank;
  for (std::size_t i = 0; fits && i < extents.size(); ++i) {
    const std::size_t axis = rank - extents.size() + i;  // of the activation; 1 is the channels
    fits = extents[i] == 1 || (axis == 1 && extents[i] == shape[0]);
  }
  if (!fits) {
    node.unsupported(
        "its constant {} has the shape {}, its other operand is {} for each image; burin takes one number "
        "or one for each channel",
        in_quotes(node.input(input)), extents_text(extents), shape_text(shape));
  }
  graph.count_weights(node, shape[0]);
  std::vector<float> values = graph.floats(node, tensor, "operand");
  if (values.size() == 1) values.resize(static_cast<std::size_t>(shape[0]), values[0]);
  return values;
}

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

// The operand that is no constant, scaled and shifted.
void emit_affine(const Node& node, GraphBuilder& graph, int constant, ChannelAffine affine) {
  graph.emit(node, std::move(affine), {graph.activation(node, 1 - constant)});
}

// Combines activations. Either may have one value for each channel of the other.
void combine(const Node& node, GraphBuilder& graph, Combination combination, int a, int b) {
  const std::vector<std::int64_t> given = with_batch(graph.shape(b));
  const std::vector<std::int64_t> aligned = aligned_shape(node, with_batch(graph.shape(a)), given);
  if (aligned != given) b = graph.emit_inner(node, "aligned", Reshape{{aligned.begin() + 1, aligned.end()}}, {b});
  const std::vector<std::int64_t>&first = graph.shape(a), &second = graph.shape(b);
  const bool swapped = first != second && second.size() == 3 && first == std::vector<std::int64_t>{second[0], 1, 1};
  graph.emit(node, Combine{combination}, swapped ? std::vector{b, a} : std::vector{a, b});
}

// The operand that is a constant, when the other is an activation.
std::optional<int> constant_operand(const Node& node, const GraphBuilder& graph) {
  if (!graph.is_activation(node, 0)) return 0;
  if (!graph.is_activation(node, 1)) return 1;
  return std::nullopt;
}

}  // namespace

void convert_add(const Node& node, GraphBuilder& graph) {
  const auto constant = constant_operand(node, graph);
  if (!constant) return combine(node, graph, Combination::add, graph.activation(node, 0), graph.activation(node, 1));
  std::vector<float> shift = per_channel(node, graph, *constant);
  if (add_to_bias(node, graph, 1 - *constant, shift)) return;
  emit_affine(node, graph, *constant, {std::vector<float>(shift.size(), 1.0F), shift});
}

void convert_sub(const Node& node, GraphBuilder& graph) {
  const auto constant = constant_operand(node, graph);
  if (!constant) {
    const int b = graph.activation(node, 1);
    const auto channels = static_cast<std::size_t>(graph.shape(b)[0]);
    graph.count_weights(node, graph.shape(b)[0]);
    const int negative = graph.emit_inner(
        node, "negative", ChannelAffine{std::vector<float>(channels, -1.0F), std::vector<float>(channels, 0.0F)}, {b});
    return combine(node, graph, Combination::add, graph.activation(node, 0), negative);
  }
  std::vector<float> shift = per_channel(node, graph, *constant);
  // x - c, or c - x.
  if (*constant == 1) std::ranges::transform(shift, shift.begin(), std::negate<>());
  emit_affine(node, graph, *constant, {std::vector<float>(shift.size(), *constant == 1 ? 1.0F : -1.0F), shift});
}

void convert_mul(const Node& node, GraphBuilder& graph) {
  const auto constant = constant_operand(node, graph);
  if (!constant) {
    return combine(node, graph, Combination::multiply, graph.activation(node, 0), graph.activation(node, 1));
  }
  const std::vector<float> scale = per_channel(node, graph, *constant);
  emit_affine(node, graph, *constant, {scale, std::vector<float>(scale.size(), 0.0F)});
}

void convert_div(const Node& node, GraphBuilder& graph) {
  if (constant_operand(node, graph) != 1) node.unsupported("it divides by an activation; burin divides by constants");
  std::vector<float> scale = per_channel(node, graph, 1);
  for (float& value : scale) {
    const auto inverse = static_cast<float>(1.0 / static_cast<double>(value));
    if (!std::isfinite(inverse)) node.bad_input("its divisor {} holds {:g}", in_quotes(node.input(1)), value);
    value = inverse;
  }
  emit_affine(node, graph, 1, {scale, std::vector<float>(scale.size(), 0.0F)});
}

void convert_sum(const Node& node, GraphBuilder& graph) {
  int sum = graph.activation(node, 0);
  if (node.inputs() == 1) return graph.emit(node, Identity{}, {sum});
  for (int i = 1; i + 1 < node.inputs(); ++i) {
    sum = graph.emit_inner(node, "sum", Combine{Combination::add}, {sum, graph.activation(node, i)});
  }
  combine(node, graph, Combination::add, sum, graph.activation(node, node.inputs() - 1));
}

}  // namespace burin
