// Operators that move or rename values without changing them: of activations, of constants, of sizes.
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "compiler/import/onnx/converters.h"
#include "ir/limits.h"
#include "ir/printable.h"
#include "ir/saturate.h"

namespace burin {
namespace {

using Extents = std::vector<std::int64_t>;

constexpr int kAxesAreAnInput = 13;  // the opset from which on they are

// An axis counted from the front.
std::int64_t axis_of(const Node& node, std::int64_t axis, std::int64_t rank) {
  if (axis < -rank || axis >= rank) node.bad_input("axis {} is none of {}", axis, rank);
  return axis < 0 ? axis + rank : axis;
}

// Sorted and counted from the front, each once.
Extents axes_of(const Node& node, Extents axes, std::int64_t rank) {
  for (std::int64_t& axis : axes) axis = axis_of(node, axis, rank);
  std::sort(axes.begin(), axes.end());
  if (std::adjacent_find(axes.begin(), axes.end()) != axes.end()) node.bad_input("it names an axis twice");
  return axes;
}

// Puts the batch before the shape: ONNX counts axes by that.
Extents with_batch(const Extents& shape) {
  Extents full = {1};
  full.insert(full.end(), shape.begin(), shape.end());
  return full;
}

// Gives the value another shape, which must have as many elements.
void emit_reshape(const Node& node, GraphBuilder& graph, Extents shape) {
  graph.emit(node, Reshape{std::move(shape)}, {graph.activation(node, 0)});
}

void define_reshaped(const Node& node, GraphBuilder& graph, StoredTensor tensor, Extents shape) {
  const auto elements = checked_elements(shape);
  if (shape.size() > static_cast<std::size_t>(kMaxTensorRank) || !elements || *elements != tensor.elements()) {
    node.bad_input("it makes {} of a constant of the shape {}", extents_text(shape), extents_text(tensor.shape()));
  }
  tensor.view.shape = std::move(shape);
  graph.define(node, std::move(tensor));
}

// Sizes that were computed have no bytes to view; each has one axis or none.
std::optional<Sizes> computed_sizes(const Node& node, GraphBuilder& graph) {
  if (graph.is_activation(node, 0)) return std::nullopt;
  Value value = graph.value(node, 0);
  auto* const sizes = std::get_if<Sizes>(&value);
  return sizes == nullptr ? std::nullopt : std::optional(std::move(*sizes));
}

// The extents that a Reshape asks for, with its zeros and its one -1 resolved. `copied`: extents that a zero takes
// over; `elements`: of all that is asked for.
Extents resolve(const Node& node, const Extents& wanted, const Extents& copied, std::int64_t elements) {
  const bool zero_copies = !node.attributes().boolean("allowzero", false);
  Extents shape = wanted;
  std::optional<std::size_t> open;
  std::int64_t known = 1;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0 && zero_copies) {
      if (i >= copied.size())
        node.bad_input("its shape [{}] has a 0 where its input has no axis", numbers_text(wanted));
      shape[i] = copied[i];
    }
    if (shape[i] == -1) {
      if (open) node.bad_input("its shape [{}] has more than one -1", numbers_text(wanted));
      open = i;
      continue;
    }
    if (shape[i] < 1) node.unsupported("its shape [{}] holds {}", numbers_text(wanted), shape[i]);
    known = saturating_product({known, shape[i]});
  }
  if (open) {
    if (elements % known != 0) {
      node.bad_input("its shape [{}] does not divide {} elements", numbers_text(wanted), elements);
    }
    shape[*open] = elements / known;
  } else if (known != elements) {
    node.bad_input("its shape [{}] has {} elements, its input {}", numbers_text(wanted), known, elements);
  }
  return shape;
}

// What a Reshape makes of one image. Its first axis must stay the batch, whatever the number of images.
Extents image_reshape(const Node& node, GraphBuilder& graph, const std::vector<Size>& wanted) {
  const Extents& image = graph.shape(graph.activation(node, 0));
  const std::int64_t elements = graph.network().tensors[graph.activation(node, 0)].elements();
  Extents rest;
  for (std::size_t i = 1; i < wanted.size(); ++i) {
    if (wanted[i].batch) node.unsupported("its shape has the number of images as axis {}; it must be the first", i);
    rest.push_back(wanted[i].value);
  }
  if (rest.empty()) node.unsupported("its shape has {} axes; the first must stay the batch", wanted.size());
  const Size first = wanted[0];
  const bool copies = first.value == 0 && !node.attributes().boolean("allowzero", false);
  const bool is_batch = first.batch || copies || (graph.fixed_batch && *graph.fixed_batch == first.value);
  if (!is_batch && (first.value != -1 || std::count(rest.begin(), rest.end(), -1) > 0)) {
    node.unsupported("the first axis of its shape is {}; it must stay the batch", first.value);
  }
  // With -1 as the number of images the other axes must hold one image.
  return resolve(node, rest, image, elements);
}

// Axis i of the result is axis order[i] of the tensor.
StoredTensor permuted(const StoredTensor& tensor, const Extents& order) {
  StoredTensor result = tensor;
  for (std::size_t i = 0; i < order.size(); ++i) {
    result.view.shape[i] = tensor.shape()[static_cast<std::size_t>(order[i])];
  }
  const auto width = static_cast<std::size_t>(tensor.view.element_bytes);
  auto bytes = std::make_shared<std::string>();
  bytes->reserve(tensor.view.bytes.size());
  visit_permuted(tensor.shape(), order, [&](std::int64_t position) {
    bytes->append(tensor.view.bytes.substr(static_cast<std::size_t>(position) * width, width));
  });
  result.owned = bytes;
  result.view.bytes = *result.owned;
  return result;
}

}  // namespace

void convert_concat(const Node& node, GraphBuilder& graph) {
  if (!node.attributes().has("axis")) node.bad_input("lacks the attribute 'axis'");
  const std::int64_t axis = node.attributes().integer("axis", 0);
  bool flows = false;
  for (int i = 0; i < node.inputs(); ++i) flows = flows || graph.is_activation(node, i);
  if (!flows) {
    Sizes joined;
    for (int i = 0; i < node.inputs(); ++i) {
      const std::optional<Sizes> part = graph.sizes(node, i);
      if (!part || part->scalar || (axis != 0 && axis != -1)) {
        node.unsupported("it joins constants; burin does this with lists of at most {} integers", kMaxSizes);
      }
      joined.values.insert(joined.values.end(), part->values.begin(), part->values.end());
      if (joined.values.size() > kMaxSizes) node.unsupported("it joins more than {} integers", kMaxSizes);
    }
    return graph.define(node, std::move(joined));
  }
  std::vector<int> inputs;
  for (int i = 0; i < node.inputs(); ++i) inputs.push_back(graph.activation(node, i));
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
  if (graph.is_activation(node, 0)) {
    if (wanted->values.empty()) node.unsupported("its shape has no axes; the first must stay the batch");
    return emit_reshape(node, graph, image_reshape(node, graph, wanted->values));
  }
  StoredTensor tensor = graph.constant(node, 0, "input");
  Extents extents = resolve(node, graph.integers(node, 1, "shape"), tensor.shape(), tensor.elements());
  define_reshaped(node, graph, std::move(tensor), std::move(extents));
}

void convert_squeeze(const Node& node, GraphBuilder& graph) {
  const std::optional<Extents> axes = graph.list(node, "axes", 1, kAxesAreAnInput);
  if (std::optional<Sizes> sizes = computed_sizes(node, graph)) {
    if (sizes->values.size() != 1) node.bad_input("it takes one number out of a list of {}", sizes->values.size());
    sizes->scalar = true;
    return graph.define(node, std::move(*sizes));
  }
  const bool flows = graph.is_activation(node, 0);
  const StoredTensor tensor = flows ? StoredTensor() : graph.constant(node, 0, "input");
  Extents shape = flows ? with_batch(graph.shape(graph.activation(node, 0))) : tensor.shape();
  Extents dropped;
  if (axes) {
    dropped = axes_of(node, *axes, static_cast<std::int64_t>(shape.size()));
  } else {
    for (std::size_t i = 0; i < shape.size(); ++i) {
      if (shape[i] == 1) dropped.push_back(static_cast<std::int64_t>(i));
    }
    // A batch that may hold several images stays.
    if (flows && graph.fixed_batch != 1) dropped.erase(dropped.begin());
  }
  if (flows && !dropped.empty() && dropped[0] == 0) node.unsupported("it drops the batch (axis 0)");
  for (auto axis = dropped.rbegin(); axis != dropped.rend(); ++axis) {
    if (shape[*axis] != 1) node.bad_input("it drops axis {}, which has {} elements", *axis, shape[*axis]);
    shape.erase(shape.begin() + *axis);
  }
  if (!flows) return define_reshaped(node, graph, tensor, std::move(shape));
  emit_reshape(node, graph, {shape.begin() + 1, shape.end()});
}

void convert_unsqueeze(const Node& node, GraphBuilder& graph) {
  const std::optional<Extents> axes = graph.list(node, "axes", 1, kAxesAreAnInput);
  if (!axes) node.bad_input("lacks its axes");
  if (std::optional<Sizes> sizes = computed_sizes(node, graph)) {
    if (!sizes->scalar || axes->size() != 1) node.unsupported("it makes a table of sizes; burin keeps lists of them");
    sizes->scalar = false;
    return graph.define(node, std::move(*sizes));
  }
  const bool flows = graph.is_activation(node, 0);
  const StoredTensor tensor = flows ? StoredTensor() : graph.constant(node, 0, "input");
  Extents shape = flows ? with_batch(graph.shape(graph.activation(node, 0))) : tensor.shape();
  const std::size_t rank = shape.size() + axes->size();
  if (rank > static_cast<std::size_t>(kMaxTensorRank)) node.bad_input("it makes a tensor of {} axes", rank);
  for (const std::int64_t axis : axes_of(node, *axes, static_cast<std::int64_t>(rank))) {
    if (flows && axis == 0) node.unsupported("it puts an axis before the batch");
    shape.insert(shape.begin() + axis, 1);
  }
  if (!flows) return define_reshaped(node, graph, tensor, std::move(shape));
  emit_reshape(node, graph, {shape.begin() + 1, shape.end()});
}

void convert_transpose(const Node& node, GraphBuilder& graph) {
  const bool flows = graph.is_activation(node, 0);
  const StoredTensor tensor = flows ? StoredTensor() : graph.constant(node, 0, "input");
  const Extents shape = flows ? with_batch(graph.shape(graph.activation(node, 0))) : tensor.shape();
  Extents order(shape.size());
  std::iota(order.rbegin(), order.rend(), 0);  // the default is to reverse them
  order = node.attributes().integers("perm").value_or(order);
  Extents sorted = order;
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    if (sorted.size() != shape.size() || sorted[i] != static_cast<std::int64_t>(i)) {
      node.bad_input("attribute 'perm' is [{}]; it must name each axis of {} once", numbers_text(order), shape.size());
    }
  }
  if (!flows) {
    graph.count_weights(node, tensor.elements());
    return graph.define(node, permuted(tensor, order));
  }
  if (order.empty() || order[0] != 0) node.unsupported("it moves the batch away from the first axis");
  Transpose transpose;
  for (std::size_t i = 1; i < order.size(); ++i) transpose.order.push_back(static_cast<int>(order[i]) - 1);
  graph.emit(node, std::move(transpose), {graph.activation(node, 0)});
}

}  // namespace burin
