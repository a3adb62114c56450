// Pools.
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

}  // namespace burin
