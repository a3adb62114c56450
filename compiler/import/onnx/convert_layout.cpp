// Operators that move or rename values without changing them.
#include <algorithm>
#include <numeric>

#include "compiler/import/onnx/axes.h"
#include "compiler/import/onnx/converters.h"
#include "compiler/import/onnx/moves.h"
#include "ir/limits.h"
#include "ir/printable.h"
#include "ir/saturate.h"

namespace burin {
namespace {

// Gives the value another shape, which must have as many elements.
void emit_reshape(const Node& node, GraphBuilder& graph, Extents shape) {
  graph.emit(node, Reshape{std::move(shape)}, {graph.activation(node, 0)});
}

// What a Reshape makes of one image. Its first axis must stay the batch, whatever the number of images.
Extents image_reshape(const Node& node, GraphBuilder& graph, const std::vector<Size>& wanted) {
  const Extents& image = graph.shape(graph.activation(node, 0));
  const std::int64_t elements = graph.network().tensors[graph.activation(node, 0)].elements();
  Extents rest;
  for (std::size_t i = 1; i < wanted.size(); ++i) {
    if (wanted[i].batch != 0) {
      node.unsupported("its shape has the number of images as axis {}; it must be the first", i);
    }
    rest.push_back(wanted[i].value);
  }
  if (rest.empty()) node.unsupported("its shape has {} axes; the first must stay the batch", wanted.size());
  const Size first = wanted[0];
  const bool is_symbol = first.batch == 1 && first.value == 0;
  if (first.batch != 0 && !is_symbol) {
    node.unsupported("the first axis of its shape is {}, where N is the number of images; it must stay the batch",
                     number_text(BatchNumber<std::int64_t>{first.value, first.batch}));
  }
  const bool copies = first.batch == 0 && first.value == 0 && !node.attributes().boolean("allowzero", false);
  const bool is_batch = is_symbol || copies || (graph.fixed_batch && *graph.fixed_batch == first.value);
  if (!is_batch && (first.value != -1 || std::count(rest.begin(), rest.end(), -1) > 0)) {
    node.unsupported("the first axis of its shape is {}; it must stay the batch", first.value);
  }
  // With -1 as the number of images the other axes must hold one image.
  const std::int64_t asked = std::accumulate(rest.begin(), rest.end(), std::int64_t{1},
                                             [](auto a, auto b) { return b < 1 ? 0 : saturating_product({a, b}); });
  if (first.value == -1 && asked > 0 && asked != elements) {
    node.unsupported(
        "its shape [-1,{}] has {} elements behind the first axis, and an image {}; burin keeps images whole",
        numbers_text(rest), asked, elements);
  }
  return resolve(node, rest, image, elements);
}

// A constant among what is joined: the same for each image.
int joined_constant(const Node& node, GraphBuilder& graph, int input, const Extents& like) {
  const StoredTensor tensor = graph.constant(node, input, "operand");
  const Extents& shape = tensor.shape();
  if (shape.size() != like.size() + 1 || shape[0] != 1 || tensor.elements() == 0) {
    node.unsupported(
        "its constant {} has the shape {}, what it is joined with {} for each image; burin joins constants whose "
        "first axis is 1: the same for each image",
        in_quotes(node.input(input)), extents_text(shape), shape_text(like));
  }
  return emit_constant(node, graph, {{shape.begin() + 1, shape.end()}, graph.floats(node, tensor, "operand")});
}

}  // namespace

void convert_concat(const Node& node, GraphBuilder& graph) {
  if (!node.attributes().has("axis")) node.bad_input("lacks the attribute 'axis'");
  const std::int64_t axis = node.attributes().integer("axis", 0);
  int first = 0;
  while (!graph.is_activation(node, first)) ++first;  // not all are constants: those are evaluated
  const Extents like = graph.shape(graph.activation(node, first));
  std::vector<int> inputs;
  for (int i = 0; i < node.inputs(); ++i) {
    inputs.push_back(graph.is_activation(node, i) ? graph.activation(node, i) : joined_constant(node, graph, i, like));
  }
  const auto rank = static_cast<std::int64_t>(graph.shape(inputs[0]).size()) + 1;
  const std::int64_t from_front = axis_of(node, axis, rank);
  if (from_front == 0) node.unsupported("it joins batches (axis 0); burin joins what belongs to one image");
  graph.emit(node, Concat{static_cast<int>(from_front) - 1}, std::move(inputs));
}

void convert_flatten(const Node& node, GraphBuilder& graph) {
  const int x = graph.activation(node, 0);
  const auto rank = static_cast<std::int64_t>(graph.shape(x).size()) + 1;
  const std::int64_t axis = node.attributes().integer("axis", 1);
  // The axis may also be the one behind the last.
  const std::int64_t from_front = axis == rank ? rank : axis_of(node, axis, rank);
  if (from_front != 1) node.unsupported("attribute 'axis' is {}; burin flattens each image whole (axis 1)", axis);
  emit_reshape(node, graph, {graph.network().tensors[x].elements()});
}

void convert_reshape(const Node& node, GraphBuilder& graph) {
  const std::optional<Sizes> wanted = graph.is_activation(node, 1) ? std::nullopt : graph.sizes(node, 1);
  if (!wanted) {
    node.unsupported("its shape {} is no constant list of at most {} integers", in_quotes(node.input(1)), kMaxSizes);
  }
  if (!graph.is_activation(node, 0)) node.unsupported("it reshapes a constant as the network's input says");
  if (wanted->values.empty()) node.unsupported("its shape has no axes; the first must stay the batch");
  emit_reshape(node, graph, image_reshape(node, graph, wanted->values));
}

void convert_squeeze(const Node& node, GraphBuilder& graph) {
  const std::optional<Extents> axes = graph.list(node, "axes", 1, kAxesAreAnInput);
  const int x = graph.activation_by_any_batch(node, 0);
  const std::int64_t batch = graph.batch_axis(node, 0);
  const Extents shape = with_batch(graph.shape(x));
  Extents dropped;
  if (axes) {
    dropped = axes_of(node, *axes, static_cast<std::int64_t>(shape.size()));
    for (std::int64_t& axis : dropped) axis = with_batch_first(axis, batch);
    std::ranges::sort(dropped);
  } else {
    // A batch that may hold several images stays.
    for (std::size_t i = graph.fixed_batch == 1 ? 0 : 1; i < shape.size(); ++i) {
      if (shape[i] == 1) dropped.push_back(static_cast<std::int64_t>(i));
    }
  }
  if (!dropped.empty() && dropped[0] == 0) node.unsupported("it drops the batch (axis {})", batch);
  const Extents left = squeezed(node, shape, dropped);
  graph.emit(node, Reshape{{left.begin() + 1, left.end()}}, {x});
  // Axes before the batch are one less with the batch first.
  const std::int64_t before = std::ranges::count_if(dropped, [&](std::int64_t axis) { return axis <= batch; });
  graph.mark_batch_axis(node.output(), batch - before);
}

void convert_unsqueeze(const Node& node, GraphBuilder& graph) {
  const std::optional<Extents> axes = graph.list(node, "axes", 1, kAxesAreAnInput);
  if (!axes) node.bad_input("lacks its axes");
  const int x = graph.activation_by_any_batch(node, 0);
  std::int64_t batch = graph.batch_axis(node, 0);
  Extents shape = with_batch(graph.shape(x));
  const std::size_t rank = shape.size() + axes->size();
  if (rank > static_cast<std::size_t>(kMaxTensorRank)) node.bad_input("it makes a tensor of {} axes", rank);
  for (const std::int64_t axis : axes_of(node, *axes, static_cast<std::int64_t>(rank))) {
    if (axis <= batch) ++batch;
    shape.insert(shape.begin() + with_batch_first(axis, batch), 1);
  }
  graph.emit(node, Reshape{{shape.begin() + 1, shape.end()}}, {x});
  graph.mark_batch_axis(node.output(), batch);
}

void convert_transpose(const Node& node, GraphBuilder& graph) {
  const int x = graph.activation_by_any_batch(node, 0);
  const std::int64_t batch = graph.batch_axis(node, 0);
  const Extents order = read_order(node, with_batch(graph.shape(x)).size());
  Transpose transpose;
  for (const std::int64_t axis : order) {
    if (axis != batch) transpose.order.push_back(static_cast<int>(with_batch_first(axis, batch)) - 1);
  }
  graph.emit(node, std::move(transpose), {x});
  graph.mark_batch_axis(node.output(), std::ranges::find(order, batch) - order.begin());
}

}  // namespace burin
