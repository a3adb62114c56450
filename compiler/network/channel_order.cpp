#include "compiler/network/channel_order.h"

#include <algorithm>

namespace burin {
namespace {

bool is_depthwise(const ConvShape& shape) {
  return shape.groups == shape.in_channels && shape.out_channels == shape.in_channels && !shape.epilogue.residual;
}

// Whether the operator's sums go over all channels of its input: then its output knows nothing of their order.
bool sums_channels(GraphEdit& graph, int op) {
  if (const auto* convolution = graph.as<Convolution>(op)) return graph.layer(*convolution).shape.groups == 1;
  return graph.as<Linear>(op) != nullptr;
}

// Whether each channel of its output is what it makes of one channel of its input, the same one.
bool works_by_channel(GraphEdit& graph, int op) {
  if (const auto* convolution = graph.as<Convolution>(op)) return is_depthwise(graph.layer(*convolution).shape);
  if (const auto* reduce = graph.as<Reduce>(op)) return reduce->axes.front() != 0;
  if (graph.as<Reshape>(op)) {
    return graph.tensor(graph.op(op).inputs[0]).shape[0] == graph.tensor(graph.op(op).output).shape[0];
  }
  return graph.as<Elementwise>(op) || graph.as<ChannelAffine>(op) || graph.as<Pool>(op) ||
         graph.as<GlobalAveragePool>(op);
}

template <typename Values>
void reorder(Values& values, const ChannelOrder& order, std::size_t each = 1) {
  Values before = values;
  for (std::size_t c = 0; c < order.size() && !values.empty(); ++c) {
    const auto from = before.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(order[c]) * each);
    std::copy_n(from, each, values.begin() + static_cast<std::ptrdiff_t>(c * each));
  }
}

// Its filters, and with them its output.
void reorder_outputs(ConvLayer& layer, const ChannelOrder& order) {
  reorder(layer.weights, order, layer.weights.size() / order.size());
  reorder(layer.bias, order);
}

void reorder_inputs(Weighted layer, const ChannelOrder& order) {
  const std::size_t filter = layer.weights().size() / static_cast<std::size_t>(layer.outputs());
  for (int k = 0; k < layer.outputs(); ++k) {
    std::vector<float> weights(filter);
    const auto begin = layer.weights().begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(k) * filter);
    std::copy_n(begin, filter, weights.begin());
    reorder(weights, order, filter / order.size());
    std::ranges::copy(weights, begin);
  }
}

}  // namespace

bool is_order(const ChannelOrder& order, std::size_t channels) {
  if (order.size() != channels) return false;
  std::vector<bool> seen(channels);
  for (const int c : order) {
    if (c < 0 || static_cast<std::size_t>(c) >= channels || seen[static_cast<std::size_t>(c)]) return false;
    seen[static_cast<std::size_t>(c)] = true;
  }
  return true;
}

ChannelOrder inverse(const ChannelOrder& order) {
  ChannelOrder result(order.size());
  for (std::size_t c = 0; c < order.size(); ++c) result[static_cast<std::size_t>(order[c])] = static_cast<int>(c);
  return result;
}

void make_another_tensor(GraphEdit& graph, int op) {
  const int output = graph.op(op).output;
  const int made = graph.add_tensor(graph.tensor(output));
  graph.rename(made, graph.tensor(output).name + ".ordered");
  graph.redirect(output, made);
  graph.set_output(op, made);
}

std::optional<std::vector<int>> readers_in_any_order(GraphEdit& graph, int tensor) {
  std::vector<int> found, unseen = {tensor};
  while (!unseen.empty()) {
    const int read = unseen.back();
    unseen.pop_back();
    if (graph.is_output(read)) return std::nullopt;
    for (const int reader : graph.readers(read)) {
      const std::vector<int>& inputs = graph.op(reader).inputs;
      if (std::ranges::count(inputs, read) != 1 || inputs[0] != read) return std::nullopt;
      if (!sums_channels(graph, reader)) {
        if (!works_by_channel(graph, reader)) return std::nullopt;
        unseen.push_back(graph.op(reader).output);
      }
      found.push_back(reader);
    }
  }
  return found;
}

void reorder_readers(GraphEdit& graph, const std::vector<int>& readers, const ChannelOrder& order) {
  for (const int op : readers) {
    if (sums_channels(graph, op)) {
      reorder_inputs(*graph.weighted(op), order);
      continue;
    }
    if (const auto* convolution = graph.as<Convolution>(op)) {
      reorder_outputs(graph.layer(*convolution), order);
    } else if (auto* affine = graph.as<ChannelAffine>(op)) {
      reorder(affine->scale, order);
      reorder(affine->shift, order);
    }
    make_another_tensor(graph, op);
  }
}

bool can_make_in_any_order(GraphEdit& graph, int tensor) {
  const auto* convolution = graph.as<Convolution>(graph.producer(tensor));
  if (convolution == nullptr || graph.is_output(tensor)) return false;
  const ConvShape& shape = graph.layer(*convolution).shape;
  return shape.groups == 1 && !shape.epilogue.residual;
}

void reorder_filters(GraphEdit& graph, int tensor, const ChannelOrder& order) {
  const int op = graph.producer(tensor);
  reorder_outputs(graph.layer(*graph.as<Convolution>(op)), order);
  make_another_tensor(graph, op);
}

}  // namespace burin
