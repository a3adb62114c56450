// Pools.
#include "compiler/import/onnx/converters.h"
#include "compiler/import/onnx/moves.h"
#include "compiler/import/onnx/window.h"
#include "ir/limits.h"

namespace burin {
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
  const AsImage x = image_of(node, graph, graph.activation(node, 0));
  if (x.shape[1] > kMaxPoolExtent || x.shape[2] > kMaxPoolExtent) {
    return emit_of_image(node, graph, x, Reduce{Statistic::largest, {1, 2}});
  }
  Pool pool;
  pool.kernel_h = static_cast<int>(x.shape[1]);
  pool.kernel_w = static_cast<int>(x.shape[2]);
  emit_of_image(node, graph, x, pool);
}

}  // namespace burin
