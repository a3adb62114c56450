// Expand and Tile: values that are there several times.
#include <algorithm>

#include "compiler/import/onnx/converters.h"
#include "compiler/import/onnx/moves.h"
#include "ir/limits.h"
#include "ir/printable.h"

namespace burin {
namespace {

using Extents = std::vector<std::int64_t>;

std::vector<Size> list_of(const Node& node, GraphBuilder& graph, std::string_view what) {
  const std::optional<Sizes> sizes = graph.is_activation(node, 1) ? std::nullopt : graph.sizes(node, 1);
  if (!sizes) {
    node.unsupported("its {} {} is no constant list of at most {} integers", what, in_quotes(node.input(1)), kMaxSizes);
  }
  return sizes->values;
}

}  // namespace

void convert_expand(const Node& node, GraphBuilder& graph) {
  const int x = graph.activation(node, 0);
  const Extents shape = graph.shape(x);
  const std::vector<Size> wanted = list_of(node, graph, "shape");
  const std::size_t rank = shape.size() + 1;
  if (wanted.size() > rank) {
    node.unsupported("it makes {} axes of {}; the first must stay the batch", wanted.size(), rank);
  }
  std::vector<PickedAxis> axes = whole_axes(shape);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    // Aligned from the last axis on.
    const std::size_t axis = rank - wanted.size() + i;
    if (axis == 0) {
      const bool same = is_batch(wanted[i]) || wanted[i].value == 1 || wanted[i].value == graph.fixed_batch;
      if (!same) node.unsupported("it makes {} images of one (axis 0)", wanted[i].value);
      continue;
    }
    if (wanted[i].batch) node.unsupported("it makes an axis as long as there are images");
    const std::int64_t extent = shape[axis - 1], made = wanted[i].value;
    if (made == 1 || made == extent) continue;
    if (extent != 1 || made < 1) node.bad_input("it makes {} of an axis of {} elements", made, extent);
    axes[axis - 1] = {0, 0, made};
  }
  emit_pick(node, graph, x, std::move(axes));
}

bool repeats_constant_for_images(const Node& node, GraphBuilder& graph) {
  if (node.op() != "Expand" || !node.has_input(0) || !node.has_input(1) || !graph.all_constant(node)) return false;
  // What depends on the number of images was computed.
  const Value value = graph.value(node, 1);
  const auto* const computed = std::get_if<SharedConstant>(&value);
  if (computed == nullptr || !(*computed)->depends_on_batch()) return false;
  const std::optional<Sizes> sizes = graph.sizes(node, 1);
  return sizes && !sizes->values.empty() && is_batch(sizes->values[0]);
}

void convert_constant_of_images(const Node& node, GraphBuilder& graph) {
  const std::vector<Size> wanted = list_of(node, graph, "shape");
  const StoredTensor tensor = graph.constant(node, 0, "input");
  if (!tensor.is_float()) node.unsupported("it makes integers for each image; burin does so with real numbers");
  Extents shape = tensor.shape();
  shape.insert(shape.begin(), std::max<std::size_t>(wanted.size(), shape.size()) - shape.size(), 1);
  if (shape.size() > wanted.size() || shape.size() < 2 || shape[0] != 1 || tensor.elements() == 0) {
    node.unsupported("it repeats a constant of the shape {} to {} axes, of which the first is the batch",
                     extents_text(tensor.shape()), wanted.size());
  }
  shape.erase(shape.begin());
  std::vector<PickedAxis> axes = whole_axes(shape);
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (wanted[i + 1].batch != 0) node.unsupported("it makes an axis as long as there are images");
    const std::int64_t made = wanted[i + 1].value;
    if (made == 1 || made == shape[i]) continue;
    if (shape[i] != 1 || made < 1) node.bad_input("it makes {} of an axis of {} elements", made, shape[i]);
    axes[i] = {0, 0, made};
  }
  emit_pick(node, graph, emit_constant(node, graph, {shape, graph.floats(node, tensor, "input")}), std::move(axes));
}

void convert_tile(const Node& node, GraphBuilder& graph) {
  int x = graph.activation(node, 0);
  const Extents shape = graph.shape(x);
  const std::vector<Size> repeats = list_of(node, graph, "repeats");
  if (repeats.size() != shape.size() + 1) {
    node.bad_input("it has {} repeats for {} axes", repeats.size(), shape.size() + 1);
  }
  if (repeats[0].batch || repeats[0].value != 1) node.unsupported("it repeats the batch (axis 0)");
  // Each axis that is repeated has one before it, of which one element is taken many times.
  Extents split, made;
  std::vector<PickedAxis> taken;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const Size& repeat = repeats[i + 1];
    if (repeat.batch || repeat.value < 1 || repeat.value > kMaxImageBytes / shape[i]) {
      node.unsupported("it repeats axis {} {} times", i + 1, repeat.batch ? 0 : repeat.value);
    }
    if (repeat.value > 1) {
      split.push_back(1);
      taken.push_back({0, 0, repeat.value});
    }
    split.push_back(shape[i]);
    taken.push_back(whole_axis(shape[i]));
    made.push_back(shape[i] * repeat.value);
  }
  if (split.size() == shape.size()) return graph.emit(node, Identity{}, {x});
  x = graph.emit_inner(node, "split", Reshape{split}, {x});
  x = graph.emit_inner(node, "repeated", Pick{taken}, {x});
  graph.emit(node, Reshape{made}, {x});
}

}  // namespace burin
