#include "compiler/import/onnx/moves.h"

#include <algorithm>
#include <numeric>

#include "compiler/import/onnx/window.h"
#include "ir/limits.h"

namespace burin {
namespace {

bool all_whole(const std::vector<PickedAxis>& axes, const std::vector<std::int64_t>& shape, std::size_t from) {
  for (std::size_t i = from; i < axes.size(); ++i) {
    if (!axes[i].is_whole(shape[i])) return false;
  }
  return true;
}

// Channels that follow each other are a view of them.
std::optional<ChannelView> view_of(const PickedAxis& channels) {
  if (channels.step != 1 && channels.extent > 1) return std::nullopt;
  return ChannelView{static_cast<int>(channels.begin), static_cast<int>(channels.extent)};
}

}  // namespace

PickedAxis whole_axis(std::int64_t extent) { return {0, 1, extent}; }

std::vector<PickedAxis> whole_axes(const std::vector<std::int64_t>& shape) {
  std::vector<PickedAxis> axes;
  for (const std::int64_t extent : shape) axes.push_back(whole_axis(extent));
  return axes;
}

Taps taps_at(const std::vector<std::int64_t>& indices) {
  Taps taps;
  for (const std::int64_t index : indices) taps.indices.push_back(static_cast<std::int32_t>(index));
  taps.weights.assign(indices.size(), 1.0F);
  return taps;
}

Taps whole_taps(std::int64_t extent) {
  std::vector<std::int64_t> indices(static_cast<std::size_t>(extent));
  std::iota(indices.begin(), indices.end(), 0);
  return taps_at(indices);
}

void emit_pick(const Node& node, GraphBuilder& graph, int x, std::vector<PickedAxis> axes, int output) {
  const std::vector<std::int64_t> shape = graph.shape(x);
  if (all_whole(axes, shape, 0)) return graph.emit(node, Identity{}, {x}, output);
  if (axes[0].is_whole(shape[0])) return graph.emit(node, Pick{std::move(axes)}, {x}, output);
  const std::optional<ChannelView> view = view_of(axes[0]);
  if (!view) return graph.emit(node, Pick{std::move(axes)}, {x}, output);
  if (all_whole(axes, shape, 1)) return graph.emit(node, *view, {x}, output);
  x = graph.emit_inner(node, "channels", *view, {x});
  axes[0] = whole_axis(view->channels);
  graph.emit(node, Pick{std::move(axes)}, {x}, output);
}

int emit_inner_pick(const Node& node, GraphBuilder& graph, int x, std::vector<PickedAxis> axes) {
  if (all_whole(axes, graph.shape(x), 0)) return x;
  return graph.emit_inner(node, "part", Pick{std::move(axes)}, {x});
}

int emit_constant(const Node& node, GraphBuilder& graph, ConstantOperand constant) {
  const std::vector<std::int64_t> shape = std::move(constant.shape);
  graph.count_weights(node, std::ssize(constant.values));
  constant.shape = {std::ssize(constant.values), 1};
  MatMul times_one;
  times_one.constant = std::move(constant);
  times_one.constant_first = true;
  const int x = graph.emit_inner(node, "constant", std::move(times_one), {graph.one_of_each_image(node)});
  return graph.emit_inner(node, "constant_as_given", Reshape{shape}, {x});
}

AsImage image_of(const Node& node, GraphBuilder& graph, int x) {
  const std::vector<std::int64_t> shape = graph.shape(x);
  if (shape.size() != 2) return {x, graph.image_shape(node, x), false};
  const std::vector<std::int64_t> image = {shape[0], 1, shape[1]};
  return {graph.emit_inner(node, "row", Reshape{image}, {x}), image, true};
}

void emit_of_image(const Node& node, GraphBuilder& graph, const AsImage& image, OperatorKind kind) {
  if (!image.row) return graph.emit(node, std::move(kind), {image.tensor});
  const int x = graph.emit_named(node, std::move(kind), {image.tensor});
  const std::vector<std::int64_t> made = graph.shape(x);
  graph.emit(node, Reshape{{made[0], made[1] * made[2]}}, {x});
}

ConvLayer choice_of_channels(const Node& node, const std::vector<std::int64_t>& image,
                             const std::vector<std::int64_t>& chosen, float value) {
  ConvLayer layer;
  ConvShape& shape = layer.shape;
  shape.in_channels = checked_int(node, image[0], 1, kMaxChannels, "the number of its input's channels");
  shape.out_channels = checked_int(node, std::ssize(chosen), 1, kMaxChannels, "the number of channels that it makes");
  shape.in_h = checked_int(node, image[1], 1, kMaxSpatialExtent, "the rows of its input");
  shape.in_w = checked_int(node, image[2], 1, kMaxSpatialExtent, "the columns of its input");
  if (shape.weight_elements() > kMaxMadeWeights) {
    node.unsupported("it makes {} channels of {}; burin's limit is a product of {} (kMaxMadeWeights)",
                     shape.out_channels, shape.in_channels, kMaxMadeWeights);
  }
  layer.weights.resize(chosen.size() * static_cast<std::size_t>(image[0]), 0.0F);
  shape.epilogue.bias = value != 0;
  if (value != 0) layer.bias.resize(chosen.size(), 0.0F);
  for (std::size_t k = 0; k < chosen.size(); ++k) {
    if (chosen[k] >= 0) {
      layer.weights[k * static_cast<std::size_t>(image[0]) + static_cast<std::size_t>(chosen[k])] = 1;
    } else if (value != 0) {
      layer.bias[k] = value;
    }
  }
  return layer;
}

}  // namespace burin
