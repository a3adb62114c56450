// Shapes of tensors as numbers. And what Gather chooses of images.
#include <algorithm>

#include "compiler/import/onnx/batch_arithmetic.h"
#include "compiler/import/onnx/converters.h"
#include "compiler/import/onnx/window.h"
#include "ir/limits.h"
#include "ir/printable.h"

namespace burin {
namespace {

// A 1x1 convolution with a single one for each output: it copies channels, and needs no operator of its own.
ConvLayer choice_of(const Node& node, const std::vector<std::int64_t>& image, const std::vector<std::int64_t>& chosen) {
  ConvLayer layer;
  ConvShape& shape = layer.shape;
  shape.in_channels = checked_int(node, image[0], 1, kMaxChannels, "the number of its input's channels");
  shape.out_channels = static_cast<int>(chosen.size());
  shape.in_h = checked_int(node, image[1], 1, kMaxSpatialExtent, "the rows of its input");
  shape.in_w = checked_int(node, image[2], 1, kMaxSpatialExtent, "the columns of its input");
  layer.weights.resize(chosen.size() * static_cast<std::size_t>(image[0]), 0.0F);
  for (std::size_t k = 0; k < chosen.size(); ++k) {
    layer.weights[k * static_cast<std::size_t>(image[0]) + static_cast<std::size_t>(chosen[k])] = 1;
  }
  return layer;
}

// Gather of an activation: channels chosen from an image, as models do that normalize each color by itself.
void gather_channels(const Node& node, GraphBuilder& graph) {
  const int x = graph.activation(node, 0);
  const std::vector<std::int64_t> image = graph.image_shape(node, x);
  constexpr std::int64_t kChannelAxis = 1, kRank = 4;
  if (const std::int64_t axis = node.attributes().integer("axis", 0);
      axis != kChannelAxis && axis != kChannelAxis - kRank) {
    node.unsupported("it chooses along axis {}; burin chooses channels (axis 1)", axis);
  }
  if (graph.is_activation(node, 1)) node.unsupported("its indices are computed from the network's input");
  std::vector<std::int64_t> chosen = graph.integers(node, 1, "indices");
  for (std::int64_t& channel : chosen) {
    if (channel < -image[0] || channel >= image[0]) {
      node.bad_input("its index is {}, its input has {} channels", channel, image[0]);
    }
    if (channel < 0) channel += image[0];
  }
  if (chosen.empty()) node.bad_input("it chooses no channel");
  const Convolution choice = graph.add_layer(node, choice_of(node, image, chosen));
  // An index without an axis takes the axis of the channels away.
  if (!graph.sizes(node, 1)->scalar) return graph.emit(node, choice, {x});
  const int channel = graph.emit_inner(node, "channel", choice, {x});
  graph.emit(node, Reshape{{image[1], image[2]}}, {channel});
}

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
  gather_channels(node, graph);
}

}  // namespace burin
