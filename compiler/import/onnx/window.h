// The attributes that convolutions and pools share: how a window moves over an image.
#pragma once

#include <optional>
#include <utility>

#include "compiler/import/onnx/moves.h"
#include "compiler/import/onnx/node.h"
#include "ir/conv_layer.h"

namespace burin {

// `value` as an int. Throws Error(bad_input) below `low`, Error(unsupported) above `high`.
int checked_int(const Node& node, std::int64_t value, std::int64_t low, std::int64_t high, std::string_view what);

// What an attribute says of rows and columns, or of the columns of a `row`: a list of two numbers, or of one, which is
// returned with `absent` before it. Nothing where there is no such attribute.
std::optional<std::pair<std::int64_t, std::int64_t>> read_extents(const Node& node, const std::string& attribute,
                                                                  bool row, std::int64_t absent);

// Strides, dilations and padding of a ConvShape or a Pool, whose kernel is known, over in_h x in_w pixels, or over a
// `row`: of the attributes strides, dilations, and pads or auto_pad.
template <typename Shape>
void read_window(const Node& node, std::int64_t in_h, std::int64_t in_w, bool row, Shape& shape);

// A pool as its attributes say, but for whether padding counts.
Pool read_pool(const Node& node, const AsImage& image, PoolKind kind);

}  // namespace burin
