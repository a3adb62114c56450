#include "compiler/import/onnx/operands.h"

#include <algorithm>
#include <numeric>

#include "compiler/import/onnx/axes.h"
#include "compiler/import/onnx/legacy_broadcast.h"
#include "compiler/import/onnx/moves.h"
#include "ir/limits.h"
#include "ir/printable.h"
#include "ir/saturate.h"

namespace burin {

namespace {

using Extents = std::vector<std::int64_t>;

// One value of an axis may stand for all of the other's.
bool fit_each_other(const Extents& a, const Extents& b) {
  return std::ranges::equal(a, b, [](std::int64_t x, std::int64_t y) { return x == y || x == 1 || y == 1; });
}

// The tensor with its values as often as the other shape needs them.
int repeated(const Node& node, GraphBuilder& graph, int x, const Extents& other) {
  const Extents shape = graph.shape(x);
  if (repeats_to(other, shape)) return x;
  Pick pick;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    pick.axes.push_back(shape[i] == 1 ? PickedAxis{0, 0, other[i]} : whole_axis(shape[i]));
  }
  return graph.emit_inner(node, "repeated", std::move(pick), {x});
}

// Operators that take booleans beside numbers, or alone.
bool takes_truths(const Node& node, int input) {
  const std::string& op = node.op();
  return op == "And" || op == "Or" || op == "Xor" || op == "Equal" || (op == "Where" && input == 0);
}

// The constant as it meets a shape, which it may repeat or be repeated to.
ConstantOperand aligned_constant(const Node& node, GraphBuilder& graph, int input, const Extents& shape, bool either) {
  const StoredTensor tensor = graph.constant(node, input, "operand");
  std::vector<std::int64_t> extents = tensor.shape();
  // Before opset 7 the second operand alone is repeated, and may say where it lies.
  if (input == 1) {
    std::vector<std::int64_t> first = with_batch(shape);
    if (extents.size() == first.size()) first[0] = extents[0];
    extents = aligned_shape(node, first, std::move(extents));
  }
  const std::size_t given_axes = extents.size();
  // Axes of extent 1 before those that it needs say nothing, and the batch is one of them.
  while (extents.size() > shape.size() && extents.front() == 1) extents.erase(extents.begin());
  if (extents.size() < shape.size()) extents.insert(extents.begin(), shape.size() - extents.size(), 1);
  const bool more_axes = given_axes > shape.size() + 1;
  if (more_axes || !(either ? fit_each_other(extents, shape) : repeats_to(extents, shape))) {
    node.unsupported(
        "its constant {} has the shape {}, its other operand is {} for each image; burin takes constants that have, "
        "along each axis, as many values or one",
        in_quotes(node.input(input)), extents_text(tensor.shape()), shape_text(shape));
  }
  graph.count_weights(node, tensor.elements());
  const bool truths = !tensor.is_float() && takes_truths(node, input);
  return {std::move(extents), truths ? mask_values(tensor.view) : graph.floats(node, tensor, "operand")};
}

}  // namespace

ConstantOperand constant_operand(const Node& node, GraphBuilder& graph, int input,
                                 const std::vector<std::int64_t>& shape) {
  return aligned_constant(node, graph, input, shape, false);
}

Met met_by_constant(const Node& node, GraphBuilder& graph, int input, int x) {
  ConstantOperand constant = aligned_constant(node, graph, input, graph.shape(x), true);
  x = repeated(node, graph, x, constant.shape);
  return {x, std::move(constant)};
}

std::optional<std::vector<float>> by_channel(const ConstantOperand& constant, std::int64_t channels) {
  const std::int64_t values = std::ssize(constant.values);
  if (values == 1) return std::vector<float>(static_cast<std::size_t>(channels), constant.values[0]);
  if (constant.shape[0] == channels && values == channels) return constant.values;
  return std::nullopt;
}

std::optional<float> only_number(const Node& node, GraphBuilder& graph, int input) {
  if (graph.is_activation(node, input)) return std::nullopt;
  std::size_t most_axes = 0;
  for (int i = 0; i < node.inputs(); ++i) {
    if (node.has_input(i) && graph.is_activation(node, i)) {
      most_axes = std::max(most_axes, graph.shape(graph.activation(node, i)).size() + 1);
    }
  }
  const StoredTensor tensor = graph.constant(node, input, "operand");
  if (tensor.elements() != 1 || tensor.shape().size() > most_axes) return std::nullopt;
  return graph.number(node, input, "operand");
}

Pending combined(const Node& node, GraphBuilder& graph, Combine op, int a, int b) {
  const std::vector<std::int64_t> given = with_batch(graph.shape(b));
  const std::vector<std::int64_t> aligned = aligned_shape(node, with_batch(graph.shape(a)), given);
  if (aligned != given) b = graph.emit_inner(node, "aligned", Reshape{{aligned.begin() + 1, aligned.end()}}, {b});
  const std::vector<std::int64_t> first = graph.shape(a), second = graph.shape(b);
  if (first.size() != second.size()) {
    node.unsupported(
        "its operands are {} and {} for each image; ONNX would let the images of one meet an axis of the other; give "
        "both as many axes (Unsqueeze)",
        shape_text(first), shape_text(second));
  }
  if (!repeats_to(second, first) && repeats_to(first, second)) {
    op.swapped = !op.swapped;
    return {std::move(op), {b, a}};
  }
  if (!fit_each_other(first, second)) {
    node.unsupported("its operands are {} and {} for each image, which do not fit each other", shape_text(first),
                     shape_text(second));
  }
  return {std::move(op), {repeated(node, graph, a, second), b}};
}

Pending combined(Combine op, Met met, bool swapped) {
  op.swapped = op.swapped != swapped;
  op.constant = std::move(met.constant);
  return {std::move(op), {met.x}};
}

Pending of_both(const Node& node, GraphBuilder& graph, Combine op) {
  if (graph.is_activation(node, 0) && graph.is_activation(node, 1)) {
    return combined(node, graph, std::move(op), graph.activation(node, 0), graph.activation(node, 1));
  }
  const int constant = graph.is_activation(node, 0) ? 1 : 0;
  const int x = graph.activation(node, 1 - constant);
  return combined(std::move(op), met_by_constant(node, graph, constant, x), constant == 0);
}

void emit(const Node& node, GraphBuilder& graph, Pending pending) {
  graph.emit(node, std::move(pending.kind), std::move(pending.inputs));
}

void emit_scaled(const Node& node, GraphBuilder& graph, int x, float scale, std::optional<Elementwise> then) {
  const std::int64_t channels = graph.shape(x)[0];
  graph.count_weights(node, channels);
  const auto count = static_cast<std::size_t>(channels);
  graph.emit(node, ChannelAffine{std::vector<float>(count, scale), std::vector<float>(count, 0.0F), then}, {x});
}

std::vector<int> image_axes(const Node& node, const GraphBuilder& graph, const std::vector<std::int64_t>& axes,
                            const std::vector<std::int64_t>& shape, std::string_view what) {
  const auto rank = static_cast<std::int64_t>(shape.size()) + 1;
  std::vector<int> result;
  for (const std::int64_t axis : axes) {
    if (axis < -rank || axis >= rank) node.bad_input("axis {} is none of its input's {}", axis, rank);
    const std::int64_t from_front = axis < 0 ? axis + rank : axis;
    if (from_front == 0 && (graph.fixed_batch != 1 || axes.size() == 1)) {
      node.unsupported("it is over the batch (axis 0), too; burin computes {} of each image by itself", what);
    }
    if (from_front > 0) result.push_back(static_cast<int>(from_front - 1));
  }
  std::ranges::sort(result);
  if (std::ranges::adjacent_find(result) != result.end()) node.bad_input("it names an axis twice");
  return result;
}

std::vector<int> trailing_axes(const Node& node, const GraphBuilder& graph, std::int64_t first,
                               const std::vector<std::int64_t>& shape, std::string_view what) {
  const auto rank = static_cast<std::int64_t>(shape.size()) + 1;
  if (first < -rank || first >= rank) node.bad_input("axis {} is none of its input's {}", first, rank);
  std::vector<std::int64_t> axes(static_cast<std::size_t>(first < 0 ? -first : rank - first));
  std::iota(axes.begin(), axes.end(), rank - std::ssize(axes));
  return image_axes(node, graph, axes, shape, what);
}

}  // namespace burin
