#include "compiler/import/onnx/window.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "ir/limits.h"
#include "ir/printable.h"
#include "ir/saturate.h"

namespace burin {
namespace {

void read_pair(const Node& node, const std::string& attribute, bool row, std::int64_t high, int& h, int& w) {
  const auto values = read_extents(node, attribute, row, 1);
  if (!values) return;
  h = checked_int(node, values->first, 1, high, attribute);
  w = checked_int(node, values->second, 1, high, attribute);
}

// Before and behind the image, what makes the output as large as the input, divided by the stride and rounded up.
std::pair<int, int> same_padding(const Node& node, std::int64_t in, int kernel, int stride, int dilation,
                                 bool more_after) {
  const std::int64_t out = ceil_div(in, stride);
  const std::int64_t total =
      std::max<std::int64_t>((out - 1) * stride + std::int64_t{kernel - 1} * dilation + 1 - in, 0);
  const int less = checked_int(node, total / 2, 0, kMaxPadding, "the padding of auto_pad");
  const int more = checked_int(node, total - total / 2, 0, kMaxPadding, "the padding of auto_pad");
  return more_after ? std::pair(less, more) : std::pair(more, less);
}

}  // namespace

int checked_int(const Node& node, std::int64_t value, std::int64_t low, std::int64_t high, std::string_view what) {
  if (value < low) node.bad_input("{} is {}, it must be at least {}", what, value, low);
  if (value > high) node.unsupported("{} is {}, burin's limit is {}", what, value, high);
  return static_cast<int>(value);
}

std::optional<std::pair<std::int64_t, std::int64_t>> read_extents(const Node& node, const std::string& attribute,
                                                                  bool row, std::int64_t absent) {
  const auto values = node.attributes().integers(attribute);
  if (!values) return std::nullopt;
  if (values->size() != (row ? 1 : 2)) {
    node.bad_input("attribute '{}' has {} values, {} needed", attribute, values->size(),
                   row ? "1 is" : "2 are (rows, columns)");
  }
  return row ? std::pair(absent, values->front()) : std::pair(values->front(), values->back());
}

template <typename Shape>
void read_window(const Node& node, std::int64_t in_h, std::int64_t in_w, bool row, Shape& shape) {
  read_pair(node, "strides", row, kMaxPoolExtent, shape.stride_h, shape.stride_w);
  read_pair(node, "dilations", row, kMaxStride, shape.dilation_h, shape.dilation_w);
  Padding& pad = shape.pad;
  if (auto pads = node.attributes().integers("pads")) {
    if (pads->size() != (row ? 2 : 4)) {
      node.bad_input("attribute 'pads' has {} values, {} are needed", pads->size(),
                     row ? "2" : "4 (top, left, bottom, right)");
    }
    if (row) pads = {0, pads->front(), 0, pads->back()};
    const auto side = [&](std::size_t i) { return checked_int(node, (*pads)[i], 0, kMaxPadding, "a value of 'pads'"); };
    pad = {side(0), side(2), side(1), side(3)};
  }
  const std::string auto_pad = node.attributes().text("auto_pad", "NOTSET");
  if (auto_pad == "NOTSET") return;
  if (pad != Padding{}) node.bad_input("has 'pads' and auto_pad {}; only one of them can count", in_quotes(auto_pad));
  if (auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER") {
    const bool upper = auto_pad == "SAME_UPPER";
    std::tie(pad.top, pad.bottom) = same_padding(node, in_h, shape.kernel_h, shape.stride_h, shape.dilation_h, upper);
    std::tie(pad.left, pad.right) = same_padding(node, in_w, shape.kernel_w, shape.stride_w, shape.dilation_w, upper);
  } else if (auto_pad != "VALID") {
    node.bad_input("attribute 'auto_pad' is {}; it must be NOTSET, SAME_UPPER, SAME_LOWER or VALID",
                   in_quotes(auto_pad));
  }
}

template void read_window(const Node&, std::int64_t, std::int64_t, bool, ConvShape&);
template void read_window(const Node&, std::int64_t, std::int64_t, bool, Pool&);

Pool read_pool(const Node& node, const AsImage& image, PoolKind kind) {
  const auto kernel = read_extents(node, "kernel_shape", image.row, 1);
  if (!kernel) node.bad_input("lacks the attribute 'kernel_shape'");
  const auto extent = [&](std::int64_t value) {
    return checked_int(node, value, 1, kMaxPoolExtent, "a value of 'kernel_shape'");
  };
  Pool pool{.kind = kind, .kernel_h = extent(kernel->first), .kernel_w = extent(kernel->second)};
  read_window(node, image.shape[1], image.shape[2], image.row, pool);
  pool.round_up = node.attributes().boolean("ceil_mode", false);
  return pool;
}

}  // namespace burin
