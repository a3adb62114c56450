#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compiler/network/graph_edit.h"
#include "compiler/network/passes.h"
#include "compiler/network/sibling_layer.h"
#include "ir/numbered_names.h"
#include "ir/parallel_for.h"

namespace burin {
namespace {

// Each channel by itself, as a pool has it.
bool is_window(const ConvShape& shape) {
  const std::optional<Elementwise>& function = shape.epilogue.function;
  return shape.groups == shape.in_channels && shape.out_channels == shape.in_channels && shape.dilation_h == 1 &&
         shape.dilation_w == 1 && !shape.epilogue.residual && !shape.epilogue.pool &&
         !(function && function->is_user());
}

Pool window_of(const ConvShape& depthwise) {
  return {.kind = PoolKind::filter,
          .kernel_h = depthwise.kernel_h,
          .kernel_w = depthwise.kernel_w,
          .stride_h = depthwise.stride_h,
          .stride_w = depthwise.stride_w,
          .pad = depthwise.pad};
}

// Nothing where that is no legal layer.
std::optional<ConvLayer> joined(const ConvLayer& convolution, const ConvLayer& depthwise) {
  if (convolution.shape.epilogue.pool || convolution.shape.epilogue.residual_last || !is_window(depthwise.shape)) {
    return std::nullopt;
  }
  ConvLayer layer = convolution;
  layer.name = joint_name({convolution.name, depthwise.name});
  layer.shape.epilogue.pool = window_of(depthwise.shape);
  layer.shape.epilogue.then = depthwise.shape.epilogue.function;
  layer.filters = depthwise.weights;
  layer.filter_bias = depthwise.bias;
  layer.filter_bias.resize(static_cast<std::size_t>(depthwise.shape.out_channels));  // zeros where it has none
  return verify(layer).empty() ? std::optional(layer) : std::nullopt;
}

class DepthwiseFuser {
 public:
  DepthwiseFuser(Network network, const Windowed& wanted, int jobs)
      : graph_(std::move(network)), wanted_(wanted), jobs_(jobs) {
    for (const Operator& op : graph_.network().operators) names_.give(op.name);
  }

  Rewritten run() {
    std::vector<Pair> pairs;
    for (int op = 0; op < graph_.operators(); ++op) {
      if (std::optional<Pair> pair = pair_of(op)) pairs.push_back(*std::move(pair));
    }
    // What one kernel takes, and what two take, is not found out at once.
    std::vector<char> is_wanted(pairs.size());
    for_each_parallel(pairs.size(), jobs_, [&](std::size_t i) {
      const Pair& pair = pairs[i];
      is_wanted[i] = static_cast<char>(wanted_(pair.made, *pair.convolution, *pair.depthwise));
    });
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      if (is_wanted[i] != 0) fuse(pairs[i]);
    }
    return {graph_.finish(), changes_};
  }

 private:
  struct Pair {
    int before, op;
    ConvLayer made;
    ConvLayer* convolution;
    const ConvLayer* depthwise;
  };

  // The depthwise convolution and the one before it, where they can be one.
  std::optional<Pair> pair_of(int op) {
    const auto* depthwise = graph_.as<Convolution>(op);
    if (depthwise == nullptr) return std::nullopt;
    const int input = graph_.op(op).inputs[0], before = graph_.producer(input);
    const auto* convolution = graph_.as<Convolution>(before);
    if (convolution == nullptr || graph_.only_reader(input) != op) return std::nullopt;
    ConvLayer& layer = graph_.layer(*convolution);
    const ConvLayer& window = graph_.layer(*depthwise);
    std::optional<ConvLayer> made = joined(layer, window);
    // Whoever asks for the operator by its name must find this one.
    if (!made || names_.has(made->name)) return std::nullopt;
    return Pair{before, op, *std::move(made), &layer, &window};
  }

  void fuse(Pair& pair) {
    // A pair before this one has one of its layers, or its name.
    if (pair.convolution->shape.epilogue.pool || pair.depthwise->shape.epilogue.pool ||
        graph_.producer(graph_.op(pair.op).inputs[0]) != pair.before || names_.has(pair.made.name)) {
      return;
    }
    names_.give(pair.made.name);
    Operator fused = graph_.op(pair.before);
    fused.name = pair.made.name;
    *pair.convolution = std::move(pair.made);
    fused.output = graph_.op(pair.op).output;
    graph_.remove(pair.op);
    graph_.replace(pair.before, fused);
    ++changes_;
  }

  GraphEdit graph_;
  const Windowed& wanted_;
  const int jobs_;
  NumberedNames names_;  // of operators
  int changes_ = 0;
};

}  // namespace

Rewritten fuse_depthwise(Network network, const Windowed& wanted, int jobs) {
  if (!wanted) return {std::move(network), 0};
  return DepthwiseFuser(std::move(network), wanted, jobs).run();
}

}  // namespace burin
