// Numbers that follow from shapes: exporters leave such arithmetic around reshapes. Of activations, Gather and Slice
// are in convert_select.cpp.
#include <algorithm>

#include "compiler/import/onnx/converters.h"
#include "compiler/import/onnx/moves.h"
#include "ir/limits.h"
#include "ir/printable.h"

namespace burin {
namespace {

using Extents = std::vector<std::int64_t>;

Sizes sizes_of(const Node& node, GraphBuilder& graph, int input) {
  if (graph.is_activation(node, input)) {
    node.unsupported("its input {} is computed from the network's input; burin does this with sizes alone",
                     in_quotes(node.input(input)));
  }
  std::optional<Sizes> sizes = graph.sizes(node, input);
  if (!sizes) {
    node.unsupported("its input {} is a constant, but no list of at most {} integers", in_quotes(node.input(input)),
                     kMaxSizes);
  }
  return std::move(*sizes);
}

// Cuts a list of `count` as Python does: what is beyond its ends is at its ends.
std::int64_t cut_at(std::int64_t index, std::int64_t count) {
  return std::clamp<std::int64_t>(index < 0 ? std::max(index, -count) + count : index, 0, count);
}

}  // namespace

void convert_shape(const Node& node, GraphBuilder& graph) {
  Sizes sizes;
  if (graph.is_activation(node, 0)) {
    sizes.values.push_back({true, 0});
    for (const std::int64_t extent : graph.shape(graph.activation(node, 0))) sizes.values.push_back({false, extent});
  } else {
    const StoredTensor tensor = graph.constant(node, 0, "input");
    for (const std::int64_t extent : tensor.shape()) sizes.values.push_back({false, extent});
  }
  const auto count = static_cast<std::int64_t>(sizes.values.size());
  const std::int64_t start = cut_at(node.attributes().integer("start", 0), count);
  const std::int64_t end = cut_at(node.attributes().integer("end", count), count);
  sizes.values.assign(sizes.values.begin() + std::min(start, end), sizes.values.begin() + end);
  graph.define(node, std::move(sizes));
}

void convert_gather(const Node& node, GraphBuilder& graph) {
  if (graph.is_activation(node, 0)) return pick_gather(node, graph);
  const Sizes from = sizes_of(node, graph, 0);
  const Sizes indices = sizes_of(node, graph, 1);
  if (const std::int64_t axis = node.attributes().integer("axis", 0); (axis != 0 && axis != -1) || from.scalar) {
    node.bad_input("attribute 'axis' is {}, its input has {} axis", axis, from.scalar ? "no" : "one");
  }
  const auto count = static_cast<std::int64_t>(from.values.size());
  Sizes result{indices.scalar, {}};
  for (const Size& index : indices.values) {
    if (index.batch || index.value < -count || index.value >= count) {
      node.bad_input("its index is {}, its input has {} values",
                     index.batch ? "the number of images" : fmt::format("{}", index.value), count);
    }
    result.values.push_back(from.values[static_cast<std::size_t>(index.value < 0 ? index.value + count : index.value)]);
  }
  graph.define(node, std::move(result));
}

void convert_slice(const Node& node, GraphBuilder& graph) {
  constexpr int kRangesAreInputs = 10;
  if (graph.is_activation(node, 0)) return pick_slice(node, graph);
  Sizes from = sizes_of(node, graph, 0);
  if (node.opset() >= kRangesAreInputs && (!node.has_input(1) || !node.has_input(2))) {
    node.bad_input("lacks its second or third input, starts and ends");
  }
  const auto list = [&](const std::string& name, int input, const Extents& absent) {
    return graph.list(node, name, input, kRangesAreInputs).value_or(absent);
  };
  const Extents starts = list("starts", 1, {}), ends = list("ends", 2, {}), axes = list("axes", 3, {0});
  const bool has_steps = node.opset() >= kRangesAreInputs && node.has_input(4);
  const Extents steps = has_steps ? graph.integers(node, 4, "steps") : Extents{1};
  if (from.scalar || starts.size() != 1 || ends.size() != 1 || axes.size() != 1 || (axes[0] != 0 && axes[0] != -1)) {
    node.bad_input("its input has one axis; it must give one start and one end, for axis 0");
  }
  if (steps != Extents{1}) node.unsupported("its step is not 1");
  const auto count = static_cast<std::int64_t>(from.values.size());
  const std::int64_t start = cut_at(starts[0], count), end = cut_at(ends[0], count);
  from.values.assign(from.values.begin() + std::min(start, end), from.values.begin() + end);
  graph.define(node, std::move(from));
}

}  // namespace burin
