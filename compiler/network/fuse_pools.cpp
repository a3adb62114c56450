#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>

#include "compiler/network/graph_edit.h"
#include "compiler/network/passes.h"
#include "ir/baked_plan_pool.h"
#include "ir/limits.h"

namespace burin {
namespace {

// Pixels that the tiles compute for each pixel of the image: windows that overlap are computed on both sides of an
// edge.
constexpr double kMostComputed = 1.25;

// The fewest, with any tile that a block has threads for; nothing: a window alone has more pixels.
std::optional<double> computed_share(const ConvShape& shape) {
  std::optional<double> least;
  const double image = static_cast<double>(shape.conv_h()) * shape.conv_w();
  for (int cols = 1; cols <= shape.out_w(); ++cols) {
    for (int rows = 1; rows <= shape.out_h(); ++rows) {
      const PixelTile tile = pixel_tile({rows, cols}, 1, shape);
      if (std::int64_t{tile.rows} * tile.cols > kMaxThreadsPerBlock) break;
      const double share = static_cast<double>(tiles_per_image(tile, shape)) * tile.pixels() / image;
      if (!least || share < *least) least = share;
    }
  }
  return least;
}

// A launch that is saved takes as long as many a convolution, and the pool's input is neither written nor read. Against
// that stands the overlap: where it is large, the convolution takes longer than both did.
bool pays(ConvShape shape, const Pool& pool) {
  shape.epilogue.pool = pool;
  if (!verify(shape).empty()) return false;  // a dilated pool
  const std::optional<double> share = computed_share(shape);
  return share && *share <= kMostComputed;
}

class PoolFuser {
 public:
  PoolFuser(Network network, const StaysApart& stays_apart) : graph_(std::move(network)), stays_apart_(stays_apart) {
    for (const Activations& tensor : graph_.network().tensors) names_.insert(tensor.name);
  }

  Rewritten run() {
    const int operators = graph_.operators();
    for (int op = 0; op < operators; ++op) {
      const std::optional<Pool> pool = pool_of(op);
      if (pool && (fuse(op, *pool) || fuse_before_concat(op, *pool))) ++changes_;
    }
    return {graph_.finish(), changes_};
  }

 private:
  std::optional<Pool> pool_of(int op) {
    if (const auto* pool = graph_.as<Pool>(op)) return *pool;
    if (graph_.as<GlobalAveragePool>(op) == nullptr) return std::nullopt;
    const std::vector<std::int64_t>& plane = graph_.tensor(graph_.op(op).inputs[0]).shape;
    if (plane[1] > kMaxPoolExtent || plane[2] > kMaxPoolExtent) return std::nullopt;
    return Pool{
        .kind = PoolKind::average, .kernel_h = static_cast<int>(plane[1]), .kernel_w = static_cast<int>(plane[2])};
  }

  // The convolution that makes a tensor which `reader` alone reads, if it can take the pool `op`; else null.
  ConvLayer* taker(int tensor, int reader, int op, const Pool& pool) {
    if (graph_.only_reader(tensor) != reader) return nullptr;
    const auto* convolution = graph_.as<Convolution>(graph_.producer(tensor));
    if (convolution == nullptr) return nullptr;
    ConvLayer& layer = graph_.layer(*convolution);
    if (layer.shape.epilogue.pool || layer.shape.epilogue.residual_last || !pays(layer.shape, pool)) return nullptr;
    return stays_apart_ && stays_apart_(graph_.op(op).name, layer, pool) ? nullptr : &layer;
  }

  bool fuse(int op, const Pool& pool) {
    const int input = graph_.op(op).inputs[0], output = graph_.op(op).output;
    ConvLayer* layer = taker(input, op, op, pool);
    if (layer == nullptr) return false;
    layer->shape.epilogue.pool = pool;
    const int convolution = graph_.producer(input);
    graph_.remove(op);
    graph_.set_output(convolution, output);
    return true;
  }

  // A pool of convolutions side by side: each pools its own channels.
  bool fuse_before_concat(int op, const Pool& pool) {
    const int input = graph_.op(op).inputs[0], output = graph_.op(op).output;
    const int concat = graph_.producer(input);
    const auto* joined = graph_.as<Concat>(concat);
    if (joined == nullptr || joined->axis != 0 || graph_.only_reader(input) != op) return false;
    const std::vector<int> parts = graph_.op(concat).inputs;
    for (const int part : parts) {
      if (taker(part, concat, op, pool) == nullptr) return false;
    }
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const int convolution = graph_.producer(parts[i]);
      ConvShape& shape = graph_.layer(*graph_.as<Convolution>(convolution)).shape;
      shape.epilogue.pool = pool;
      const int pooled = graph_.add_tensor(
          {new_name(graph_.tensor(parts[i]).name), {shape.out_channels, shape.out_h(), shape.out_w()}});
      graph_.set_output(convolution, pooled);
      graph_.set_input(concat, i, pooled);
    }
    graph_.remove(op);
    graph_.set_output(concat, output);
    return true;
  }

  // What keeps its name keeps its values; these are others.
  std::string new_name(const std::string& unpooled) {
    std::string name = unpooled + ".pooled";
    while (!names_.insert(name).second) name += '_';
    return name;
  }

  GraphEdit graph_;
  const StaysApart& stays_apart_;
  std::set<std::string> names_;  // of all tensors
  int changes_ = 0;
};

}  // namespace

Rewritten fuse_pools(Network network, const StaysApart& stays_apart) {
  return PoolFuser(std::move(network), stays_apart).run();
}

}  // namespace burin
