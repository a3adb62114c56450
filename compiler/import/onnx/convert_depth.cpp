// Between channels and pixels: DepthToSpace, SpaceToDepth, and ConvTranspose, which is a convolution before the one.
#include <algorithm>

#include "compiler/import/onnx/converters.h"
#include "compiler/import/onnx/moves.h"
#include "compiler/import/onnx/window.h"
#include "ir/limits.h"
#include "ir/printable.h"
#include "ir/saturate.h"

namespace burin {
namespace {

using Extents = std::vector<std::int64_t>;

std::int64_t block_size(const Node& node) {
  const std::int64_t size = node.attributes().integer("blocksize", 0);
  return checked_int(node, size, 1, kMaxSpatialExtent, "attribute 'blocksize'");
}

}  // namespace

int emit_depth_to_space(const Node& node, GraphBuilder& graph, int x, std::int64_t block_h, std::int64_t block_w,
                        bool blocks_first) {
  const Extents image = graph.image_shape(node, x);
  const std::int64_t channels = image[0] / (block_h * block_w);
  const Extents split = blocks_first ? Extents{block_h, block_w, channels, image[1], image[2]}
                                     : Extents{channels, block_h, block_w, image[1], image[2]};
  const std::vector<int> order = blocks_first ? std::vector{2, 3, 0, 4, 1} : std::vector{0, 3, 1, 4, 2};
  x = graph.emit_inner(node, "split", Reshape{split}, {x});
  x = graph.emit_inner(node, "turned", Transpose{order}, {x});
  return graph.emit_inner(node, "space", Reshape{{channels, image[1] * block_h, image[2] * block_w}}, {x});
}

void convert_depth_to_space(const Node& node, GraphBuilder& graph) {
  const std::int64_t block = block_size(node);
  const std::string mode = node.attributes().text("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") {
    node.bad_input("attribute 'mode' is {}; it must be DCR or CRD", in_quotes(mode));
  }
  const int x = graph.activation(node, 0);
  const Extents& image = graph.image_shape(node, x);
  if (image[0] % (block * block) != 0) {
    node.bad_input("its input has {} channels, which are no multiple of {} x {}", image[0], block, block);
  }
  graph.emit(node, Identity{}, {emit_depth_to_space(node, graph, x, block, block, mode == "DCR")});
}

void convert_space_to_depth(const Node& node, GraphBuilder& graph) {
  const std::int64_t block = block_size(node);
  int x = graph.activation(node, 0);
  const Extents image = graph.image_shape(node, x);
  if (image[1] % block != 0 || image[2] % block != 0) {
    node.bad_input("its input is {}, whose rows and columns are no multiples of {}", shape_text(image), block);
  }
  const std::int64_t rows = image[1] / block, cols = image[2] / block;
  x = graph.emit_inner(node, "split", Reshape{{image[0], rows, block, cols, block}}, {x});
  x = graph.emit_inner(node, "turned", Transpose{{2, 4, 0, 1, 3}}, {x});
  graph.emit(node, Reshape{{image[0] * block * block, rows, cols}}, {x});
}

}  // namespace burin
