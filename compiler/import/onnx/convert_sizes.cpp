// Shapes of tensors as numbers. What Gather and Slice choose of activations is in convert_select.cpp.
#include <algorithm>

#include "compiler/import/onnx/batch_arithmetic.h"
#include "compiler/import/onnx/converters.h"
#include "compiler/import/onnx/moves.h"
#include "ir/limits.h"
#include "ir/printable.h"

namespace burin {
namespace {

// Cuts a list of `count` as Python does: what is beyond its ends is at its ends.
std::int64_t cut_at(std::int64_t index, std::int64_t count) {
  return std::clamp<std::int64_t>(index < 0 ? std::max(index, -count) + count : index, 0, count);
}

// The extents of an input, of an activation with the batch in front.
Numbers<std::int64_t> extents_of(const Node& node, GraphBuilder& graph) {
  if (!graph.is_activation(node, 0)) {
    const Value value = graph.value(node, 0);
    if (const auto* const stored = std::get_if<StoredTensor>(&value)) return Numbers(stored->shape());
    return Numbers(std::get<SharedConstant>(value)->shape);
  }
  Numbers<std::int64_t> extents;
  extents.push_back({.value = 0, .per_image = 1});
  for (const std::int64_t extent : graph.shape(graph.activation(node, 0))) extents.push_back({extent, 0});
  return extents;
}

}  // namespace

void convert_shape(const Node& node, GraphBuilder& graph) {
  const Numbers<std::int64_t> extents = extents_of(node, graph);
  const auto count = static_cast<std::int64_t>(extents.size());
  const std::int64_t start = cut_at(node.attributes().integer("start", 0), count);
  const std::int64_t end = cut_at(node.attributes().integer("end", count), count);
  Numbers<std::int64_t> cut;
  for (std::int64_t i = start; i < end; ++i) cut.push_back(extents[static_cast<std::size_t>(i)]);
  graph.define_constant(node, node.output(),
                        integer_constant({std::max<std::int64_t>(end - start, 0)}, std::move(cut)));
}

void convert_size(const Node& node, GraphBuilder& graph) {
  const Numbers<std::int64_t> extents = extents_of(node, graph);
  BatchNumber<std::int64_t> product{1, 0};
  for (std::size_t i = 0; i < extents.size(); ++i) product = multiply(node, product, extents[i]);
  Numbers<std::int64_t> result;
  result.push_back(product);
  graph.define_constant(node, node.output(), integer_constant({}, std::move(result)));
}

void convert_gather(const Node& node, GraphBuilder& graph) {
  if (!graph.is_activation(node, 0)) {
    node.unsupported("its indices are computed from the network's input; burin chooses by constant indices");
  }
  pick_gather(node, graph);
}

void convert_slice(const Node& node, GraphBuilder& graph) {
  if (!graph.is_activation(node, 0)) {
    node.unsupported("its ranges are computed from the network's input; burin cuts by constant ones");
  }
  pick_slice(node, graph);
}

}  // namespace burin
