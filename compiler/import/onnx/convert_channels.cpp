// Gather of activations: channels chosen from an image, as models do that normalize each color by itself.
#include "compiler/import/onnx/converters.h"
#include "compiler/import/onnx/window.h"
#include "ir/limits.h"

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

}  // namespace

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
  ConvLayer layer = choice_of(node, image, chosen);
  // An index without an axis takes the axis of the channels away.
  if (!graph.sizes(node, 1)->scalar) return graph.emit_convolution(node, std::move(layer), x);
  const int channel = graph.emit_inner_convolution(node, "channel", std::move(layer), x);
  graph.emit(node, Reshape{{image[1], image[2]}}, {channel});
}

}  // namespace burin
