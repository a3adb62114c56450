// Pools and padding.
#include <fmt/ranges.h>

#include <algorithm>

#include "compiler/import/onnx/converters.h"
#include "compiler/import/onnx/window.h"
#include "ir/limits.h"
#include "ir/printable.h"

namespace burin {
namespace {

// Counts axes from the batch on; negative ones count from the end.
std::vector<std::int64_t> from_front(const Node& node, std::vector<std::int64_t> axes, std::int64_t rank) {
  for (std::int64_t& axis : axes) {
    if (axis < -rank || axis >= rank) node.bad_input("axis {} is none of its input's {}", axis, rank);
    if (axis < 0) axis += rank;
  }
  std::sort(axes.begin(), axes.end());
  return axes;
}

}  // namespace

void convert_max_pool(const Node& node, GraphBuilder& graph) {
  node.attributes().boolean("storage_order", false);  // of the second output
  graph.emit(node, read_pool(node, graph, PoolKind::max), {graph.activation(node, 0)});
}

void convert_average_pool(const Node& node, GraphBuilder& graph) {
  Pool pool = read_pool(node, graph, PoolKind::average);
  pool.count_padding = node.attributes().boolean("count_include_pad", false);
  graph.emit(node, pool, {graph.activation(node, 0)});
}

void convert_global_average_pool(const Node& node, GraphBuilder& graph) {
  graph.emit(node, GlobalAveragePool{}, {graph.activation(node, 0)});
}

void convert_global_max_pool(const Node& node, GraphBuilder& graph) {
  const int x = graph.activation(node, 0);
  const std::vector<std::int64_t>& image = graph.image_shape(node, x);
  if (image[1] > kMaxPoolExtent || image[2] > kMaxPoolExtent) {
    return graph.emit(node, Reduce{Statistic::largest, {1, 2}}, {x});
  }
  Pool pool;
  pool.kernel_h = static_cast<int>(image[1]);
  pool.kernel_w = static_cast<int>(image[2]);
  graph.emit(node, pool, {x});
}

void convert_pad(const Node& node, GraphBuilder& graph) {
  constexpr int kPadsAreAnInput = 11;
  constexpr int kAxesInput = 3;
  const Attributes& attributes = node.attributes();
  if (const std::string mode = attributes.text("mode", "constant"); mode != "constant") {
    node.unsupported("attribute 'mode' is {}; burin pads with a constant", in_quotes(mode));
  }
  const int x = graph.activation(node, 0);
  const auto rank = static_cast<std::int64_t>(graph.image_shape(node, x).size()) + 1;
  Pad pad;
  std::vector<std::int64_t> pads;
  if (node.opset() >= kPadsAreAnInput) {
    if (!node.has_input(1)) node.bad_input("lacks its second input, the padding");
    pads = graph.integers(node, 1, "padding");
    if (node.has_input(2)) pad.value = graph.number(node, 2, "value");
  } else {
    pads = attributes.integers("pads").value_or(std::vector<std::int64_t>{});
    pad.value = attributes.number("value", 0);
  }
  std::vector<std::int64_t> axes = {0, 1, 2, 3};
  if (node.has_input(kAxesInput)) axes = graph.integers(node, kAxesInput, "axes");
  if (pads.size() != 2 * axes.size()) {
    node.bad_input("its padding has {} values for {} axes; it needs two for each", pads.size(), axes.size());
  }
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::int64_t axis = from_front(node, {axes[i]}, rank).front();
    const std::int64_t before = pads[i], after = pads[axes.size() + i];
    if (axis < 2 && (before != 0 || after != 0)) {
      node.unsupported("it pads the {}; burin pads rows and columns", axis == 0 ? "batch" : "channels");
    }
    if (before < 0 || after < 0) node.unsupported("its padding is negative; burin does not crop");
    if (axis < 2) continue;
    (axis == 2 ? pad.pad.top : pad.pad.left) = checked_int(node, before, 0, kMaxPadding, "its padding");
    (axis == 2 ? pad.pad.bottom : pad.pad.right) = checked_int(node, after, 0, kMaxPadding, "its padding");
  }
  graph.emit(node, pad, {x});
}

}  // namespace burin
