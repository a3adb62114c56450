// What the converters of operators that move values have in common.
#pragma once

#include <vector>

#include "compiler/import/onnx/graph_builder.h"
#include "compiler/import/onnx/node.h"

namespace burin {

// Whether it is the number of images as it is.
inline bool is_batch(const Size& size) { return size.batch == 1 && size.value == 0; }

// All of an axis as it is, and an index of each element that an axis of the output has.
PickedAxis whole_axis(std::int64_t extent);
std::vector<PickedAxis> whole_axes(const std::vector<std::int64_t>& shape);
Taps taps_at(const std::vector<std::int64_t>& indices);
Taps whole_taps(std::int64_t extent);

// What of the tensor lies on these axes, as the node's output: nothing moves where it is channels that follow each
// other, or all.
void emit_pick(const Node& node, GraphBuilder& graph, int x, std::vector<PickedAxis> axes, int output = 0);
// The same as an operator before it; returns its tensor.
int emit_inner_pick(const Node& node, GraphBuilder& graph, int x, std::vector<PickedAxis> axes);

// A tensor that has the same values for each image; returns it.
int emit_constant(const Node& node, GraphBuilder& graph, ConstantOperand constant);

// A tensor as an image: channels x columns are one of a single row. Throws Error(unsupported) for other shapes.
struct AsImage {
  int tensor = 0;
  std::vector<std::int64_t> shape;
  bool row = false;
};
AsImage image_of(const Node& node, GraphBuilder& graph, int x);
// What the operator makes of it as the node's output, channels x columns again where it was that.
void emit_of_image(const Node& node, GraphBuilder& graph, const AsImage& image, OperatorKind kind);

// A 1x1 convolution with a single one for each output, that copies channels; one below 0 is `value` everywhere.
ConvLayer choice_of_channels(const Node& node, const std::vector<std::int64_t>& image,
                             const std::vector<std::int64_t>& chosen, float value = 0);

// Blocks of channels become pixels: the channel of a pixel in a block is (block, channel) where `blocks_first`, else
// (channel, block). Returns the tensor.
int emit_depth_to_space(const Node& node, GraphBuilder& graph, int x, std::int64_t block_h, std::int64_t block_w,
                        bool blocks_first);

// Gather and Slice of an activation.
void pick_gather(const Node& node, GraphBuilder& graph);
void pick_slice(const Node& node, GraphBuilder& graph);

}  // namespace burin
