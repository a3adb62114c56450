// The attributes that convolutions and pools share: how a window moves over an image.
#pragma once

#include "compiler/import/onnx/graph_builder.h"
#include "compiler/import/onnx/node.h"
#include "ir/conv_layer.h"

namespace burin {

// `value` as an int. Throws Error(bad_input) below `low`, Error(unsupported) above `high`.
int checked_int(const Node& node, std::int64_t value, std::int64_t low, std::int64_t high, std::string_view what);

// Strides, dilations and padding of a ConvShape or a Pool, whose kernel is known, over in_h x in_w pixels: of the
// attributes strides, dilations, and pads or auto_pad.
template <typename Shape>
void read_window(const Node& node, std::int64_t in_h, std::int64_t in_w, Shape& shape);

// A pool of images as its attributes say, but for whether padding counts.
Pool read_pool(const Node& node, GraphBuilder& graph, PoolKind kind);

}  // namespace burin
