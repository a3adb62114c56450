// The attributes that convolutions and pools share: how a window moves over an image.
#pragma once

#include "compiler/import/onnx/node.h"
#include "ir/conv_layer.h"

namespace burin {

struct Window {
  int kernel_h = 1, kernel_w = 1;
  int stride_h = 1, stride_w = 1;
  int dilation_h = 1, dilation_w = 1;
  Padding pad;
};

// `value` as an int. Throws Error(bad_input) below `low`, Error(unsupported) above `high`.
int checked_int(const Node& node, std::int64_t value, std::int64_t low, std::int64_t high, std::string_view what);

// strides, dilations, and pads or auto_pad, for a kernel over in_h x in_w pixels.
Window read_window(const Node& node, int kernel_h, int kernel_w, std::int64_t in_h, std::int64_t in_w);

}  // namespace burin
