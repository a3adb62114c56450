// Normalizations by what an image holds itself: of layers, instances and groups, of lengths, and softmax.
#include <algorithm>
#include <numeric>

#include "compiler/import/onnx/converters.h"
#include "compiler/import/onnx/operands.h"
#include "compiler/import/onnx/window.h"
#include "ir/limits.h"
#include "ir/printable.h"
#include "ir/saturate.h"

namespace burin {
namespace {

constexpr float kDefaultNormEpsilon = 1e-5F;
constexpr std::int64_t kExactFloats = std::int64_t{1} << 24;  // whole numbers that floats tell apart

// One number for each of `count`, along the first of so many axes.
ConstantOperand first_axis_list(const Node& node, GraphBuilder& graph, int input, std::int64_t count, std::size_t axes,
                                std::string_view what) {
  const StoredTensor tensor = graph.constant(node, input, what);
  if (tensor.shape() != std::vector<std::int64_t>{count}) {
    node.bad_input("its {} {} has the shape {}, it must have {} values", what, in_quotes(node.input(input)),
                   extents_text(tensor.shape()), count);
  }
  graph.count_weights(node, count);
  std::vector<std::int64_t> shape(axes, 1);
  shape[0] = count;
  return {std::move(shape), graph.floats(node, tensor, what)};
}

// Both in the shape to which both repeat.
void match_shapes(const Node& node, GraphBuilder& graph, Normalize& op) {
  if (!op.scale || !op.shift || op.scale->shape == op.shift->shape) return;
  std::vector<std::int64_t> shape;
  for (std::size_t i = 0; i < op.scale->shape.size(); ++i) {
    shape.push_back(std::max(op.scale->shape[i], op.shift->shape[i]));
  }
  for (ConstantOperand* numbers : {&*op.scale, &*op.shift}) {
    ConstantOperand repeated{shape, {}};
    const std::int64_t count = saturating_product(shape);
    graph.count_weights(node, count);
    for (std::int64_t i = 0; i < count; ++i) {
      std::int64_t rest = i, from = 0, step = 1;
      for (std::size_t axis = shape.size(); axis-- > 0;) {
        if (numbers->shape[axis] > 1) from += rest % shape[axis] * step;
        rest /= shape[axis];
        step *= numbers->shape[axis];
      }
      repeated.values.push_back(numbers->values[static_cast<std::size_t>(from)]);
    }
    *numbers = std::move(repeated);
  }
}

// Over the axes from `axis` on, with a scale and, as the third input, a shift.
void emit_trailing(const Node& node, GraphBuilder& graph, Normalization normalization) {
  const Attributes& attributes = node.attributes();
  const int x = graph.activation(node, 0);
  const std::vector<std::int64_t> shape = graph.shape(x);
  Normalize op{normalization};
  op.axes = trailing_axes(node, graph, attributes.integer("axis", -1), shape, "normalizations");
  op.epsilon = attributes.number("epsilon", kDefaultNormEpsilon);
  attributes.integer("stash_type", 1);  // burin computes in float32 whatever it says
  op.scale = constant_operand(node, graph, 1, shape);
  constexpr int kShiftInput = 2;
  if (node.has_input(kShiftInput)) op.shift = constant_operand(node, graph, kShiftInput, shape);
  match_shapes(node, graph, op);
  graph.emit(node, std::move(op), {x});
}

// Softmax and its kin go over the axis and, before that opset, over all that follow.
std::vector<int> softmax_axes(const Node& node, GraphBuilder& graph, const std::vector<std::int64_t>& shape) {
  constexpr int kOneAxisOpset = 13;
  const bool one_axis = node.opset() >= kOneAxisOpset;
  const std::int64_t given = node.attributes().integer("axis", one_axis ? -1 : 1);
  return one_axis ? image_axes(node, graph, {given}, shape, "softmax")
                  : trailing_axes(node, graph, given, shape, "softmax");
}

void emit_softmax(const Node& node, GraphBuilder& graph, Normalization normalization) {
  const int x = graph.activation(node, 0);
  const std::vector<std::int64_t> shape = graph.shape(x);
  std::vector<int> axes = softmax_axes(node, graph, shape);
  // Axes of extent 1 change nothing; the softmax over channels has kernels of its own.
  std::vector<int> wide;
  std::ranges::copy_if(axes, std::back_inserter(wide),
                       [&](int axis) { return shape[static_cast<std::size_t>(axis)] > 1; });
  const bool channels_alone = wide.empty() || wide == std::vector<int>{0};
  if (normalization == Normalization::softmax && channels_alone && axes.front() == 0) {
    return graph.emit(node, Softmax{}, {x});
  }
  graph.emit(node, Normalize{normalization, std::move(axes)}, {x});
}

}  // namespace

void convert_layer_normalization(const Node& node, GraphBuilder& graph) {
  emit_trailing(node, graph, Normalization::deviation);
}
void convert_rms_normalization(const Node& node, GraphBuilder& graph) {
  emit_trailing(node, graph, Normalization::root_mean_square);
}

void convert_instance_normalization(const Node& node, GraphBuilder& graph) {
  const int x = graph.activation(node, 0);
  const std::vector<std::int64_t>& shape = graph.shape(x);
  if (shape.size() < 2) {
    node.unsupported("its input is {} for each image; there is nothing beside the channels to normalize over",
                     shape_text(shape));
  }
  Normalize op{Normalization::deviation, trailing_axes(node, graph, 2, shape, "normalizations")};
  op.epsilon = node.attributes().number("epsilon", kDefaultNormEpsilon);
  op.scale = first_axis_list(node, graph, 1, shape[0], shape.size(), "scale");
  op.shift = first_axis_list(node, graph, 2, shape[0], shape.size(), "bias");
  graph.emit(node, std::move(op), {x});
}

// Channels of a group are one more axis, which a reshape makes and takes away again.
void convert_group_normalization(const Node& node, GraphBuilder& graph) {
  constexpr int kNumbersByChannel = 21;  // before, one for each group
  const Attributes& attributes = node.attributes();
  const int x = graph.activation(node, 0);
  const std::vector<std::int64_t> shape = graph.shape(x);
  if (!attributes.has("num_groups")) node.bad_input("lacks the attribute 'num_groups'");
  const std::int64_t groups = checked_int(node, attributes.integer("num_groups", 0), 1, kMaxChannels, "'num_groups'");
  if (shape[0] % groups != 0) node.bad_input("{} channels cannot be divided into {} groups", shape[0], groups);
  attributes.integer("stash_type", 1);
  std::vector<std::int64_t> split = {groups, shape[0] / groups};
  split.insert(split.end(), shape.begin() + 1, shape.end());
  Normalize op{Normalization::deviation, trailing_axes(node, graph, 2, split, "normalizations")};
  op.epsilon = attributes.number("epsilon", kDefaultNormEpsilon);
  const std::int64_t numbers = node.opset() >= kNumbersByChannel ? shape[0] : groups;
  const auto numbers_at = [&](int input, std::string_view what) {
    ConstantOperand list = first_axis_list(node, graph, input, numbers, split.size(), what);
    list.shape[0] = groups;
    list.shape[1] = numbers / groups;
    return list;
  };
  op.scale = numbers_at(1, "scale");
  op.shift = numbers_at(2, "bias");
  const int grouped = graph.emit_inner(node, "grouped", Reshape{split}, {x});
  const int normal = graph.emit_inner(node, "normal", std::move(op), {grouped});
  graph.emit(node, Reshape{shape}, {normal});
}

void convert_lp_normalization(const Node& node, GraphBuilder& graph) {
  const int x = graph.activation(node, 0);
  const std::int64_t p = node.attributes().integer("p", 2);
  if (p != 1 && p != 2) node.bad_input("attribute 'p' is {}, it must be 1 or 2", p);
  const std::int64_t axis = node.attributes().integer("axis", -1);
  graph.emit(node,
             Normalize{p == 1 ? Normalization::magnitudes : Normalization::length,
                       image_axes(node, graph, {axis}, graph.shape(x), "normalizations")},
             {x});
}

void convert_mean_variance_normalization(const Node& node, GraphBuilder& graph) {
  const int x = graph.activation(node, 0);
  const std::vector<std::int64_t> absent = {0, 2, 3};
  const std::vector<std::int64_t> axes = node.attributes().integers("axes").value_or(absent);
  Normalize op{Normalization::deviation, image_axes(node, graph, axes, graph.shape(x), "normalizations")};
  op.epsilon = 1e-18F;  // ONNX adds 1e-9 to the deviation
  if (op.axes.empty()) node.bad_input("attribute 'axes' is empty");
  graph.emit(node, std::move(op), {x});
}

void convert_softmax(const Node& node, GraphBuilder& graph) { emit_softmax(node, graph, Normalization::softmax); }

// One where the largest value is, of several that are as large the first. The largest get numbers that fall from the
// first to the last of their group, of which again the largest is found.
void convert_hardmax(const Node& node, GraphBuilder& graph) {
  const int x = graph.activation(node, 0);
  const std::vector<std::int64_t> shape = graph.shape(x);
  const std::vector<int> axes = softmax_axes(node, graph, shape);
  ConstantOperand falling{std::vector<std::int64_t>(shape.size(), 1), {}};
  for (const int axis : axes) falling.shape[static_cast<std::size_t>(axis)] = shape[static_cast<std::size_t>(axis)];
  const std::int64_t count = saturating_product(falling.shape);
  if (count > kExactFloats) {
    node.unsupported("it is over {} values; burin's limit is {} (kExactFloats)", count, kExactFloats);
  }
  graph.count_weights(node, count);
  for (std::int64_t i = count; i > 0; --i) falling.values.push_back(static_cast<float>(i));
  const int largest = graph.emit_inner(node, "largest", Reduce{Statistic::largest, axes}, {x});
  const int all = graph.emit_inner(node, "all", Combine{Combination::equal}, {x, largest});
  Combine by_place{Combination::multiply};
  by_place.constant = std::move(falling);
  const int places = graph.emit_inner(node, "places", std::move(by_place), {all});
  const int first = graph.emit_inner(node, "first", Reduce{Statistic::largest, axes}, {places});
  graph.emit(node, Combine{Combination::equal}, {places, first});
}

void convert_log_softmax(const Node& node, GraphBuilder& graph) {
  emit_softmax(node, graph, Normalization::log_softmax);
}

}  // namespace burin
