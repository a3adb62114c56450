// Pools, and means over images.
#include <fmt/ranges.h>

#include <algorithm>

#include "compiler/import/onnx/converters.h"
#include "compiler/import/onnx/moves.h"
#include "compiler/import/onnx/window.h"
#include "ir/limits.h"
#include "ir/printable.h"

namespace burin {
namespace {

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
  const AsImage image = image_of(node, graph, graph.activation(node, 0));
  emit_of_image(node, graph, image, read_pool(node, image, PoolKind::max));
}

void convert_average_pool(const Node& node, GraphBuilder& graph) {
  const AsImage image = image_of(node, graph, graph.activation(node, 0));
  Pool pool = read_pool(node, image, PoolKind::average);
  pool.count_padding = node.attributes().boolean("count_include_pad", false);
  emit_of_image(node, graph, image, pool);
}

void convert_global_average_pool(const Node& node, GraphBuilder& graph) {
  emit_of_image(node, graph, image_of(node, graph, graph.activation(node, 0)), GlobalAveragePool{});
}

void convert_global_max_pool(const Node& node, GraphBuilder& graph) {
  // A window of a whole image is one thread's work: a large image is pooled in steps, which do not change a maximum.
  constexpr std::int64_t kMostPixels = 1024, kMostExtent = 32;
  AsImage x = image_of(node, graph, graph.activation(node, 0));
  while (true) {
    const std::vector<std::int64_t>& image = x.shape;
    const bool last = image[1] * image[2] <= kMostPixels && std::max(image[1], image[2]) <= kMaxPoolExtent;
    const std::int64_t most = last ? kMaxPoolExtent : kMostExtent;
    Pool pool;
    pool.kernel_h = pool.stride_h = static_cast<int>(std::min(image[1], most));
    pool.kernel_w = pool.stride_w = static_cast<int>(std::min(image[2], most));
    pool.round_up = !last;
    if (last) return emit_of_image(node, graph, x, pool);
    x.tensor = graph.emit_inner(node, "part", pool, {x.tensor});
    x.shape = graph.shape(x.tensor);
  }
}

void convert_reduce_mean(const Node& node, GraphBuilder& graph) {
  constexpr int kAxesAreAnInput = 18;
  const Attributes& attributes = node.attributes();
  const int x = graph.activation(node, 0);
  const auto axes = graph.list(node, "axes", 1, kAxesAreAnInput);
  // Without axes there is no global mean in either case.
  if (node.opset() >= kAxesAreAnInput) attributes.boolean("noop_with_empty_axes", false);
  const bool keeps_axes = attributes.boolean("keepdims", true);
  const auto rank = static_cast<std::int64_t>(graph.shape(x).size()) + 1;
  const std::vector<std::int64_t> spatial = {2, 3};
  if (!axes || from_front(node, *axes, rank) != spatial || rank != 4) {
    node.unsupported("it is over {} of {} for each image; burin computes means over rows and columns (axes 2 and 3)",
                     axes ? fmt::format("the axes {}", numbers_text(*axes)) : "all axes", shape_text(graph.shape(x)));
  }
  if (keeps_axes) return graph.emit(node, GlobalAveragePool{}, {x});
  const std::int64_t channels = graph.shape(x)[0];
  const int mean = graph.emit_inner(node, "mean", GlobalAveragePool{}, {x});
  graph.emit(node, Reshape{{channels}}, {mean});
}

}  // namespace burin
