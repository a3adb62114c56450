#include <algorithm>

#include "compiler/element_functions.h"
#include "compiler/network/graph_edit.h"
#include "compiler/network/passes.h"

namespace burin {
namespace {

bool ends_never_negative(const std::optional<Elementwise>& function) { return function && never_negative(*function); }

// What is added last must not be negative either.
bool ends_never_negative(const Epilogue& epilogue, bool residual) {
  return ends_never_negative(epilogue.function) && (!epilogue.residual_last || residual);
}

// Tensors that hold no value below zero, whatever the network's inputs are.
std::vector<bool> never_negative_tensors(const Network& network) {
  std::vector<bool> known(network.tensors.size());
  for (const Operator& op : network.operators) {
    bool never = false;
    if (const auto* convolution = std::get_if<Convolution>(&op.kind)) {
      const Epilogue& epilogue = network.layers[static_cast<std::size_t>(convolution->layer)].shape.epilogue;
      never = ends_never_negative(epilogue, known[static_cast<std::size_t>(op.inputs.back())]);
    } else if (const auto* linear = std::get_if<Linear>(&op.kind)) {
      never = ends_never_negative(linear->function);
    } else if (std::holds_alternative<Softmax>(op.kind)) {
      never = true;
    } else {
      // What is left keeps the sign of its inputs, but for what adds or multiplies by numbers of its own.
      const auto is_known = [&](int tensor) { return known[static_cast<std::size_t>(tensor)]; };
      never = std::all_of(op.inputs.begin(), op.inputs.end(), is_known);
      const auto pass = [&](const Elementwise& function) {
        never = never_negative(function) || (never && keeps_nonnegative(function));
      };
      if (const auto* element = std::get_if<Elementwise>(&op.kind)) pass(*element);
      if (const auto* pad = std::get_if<Pad>(&op.kind)) never = never && pad->value >= 0;
      if (const auto* combine = std::get_if<Combine>(&op.kind)) {
        never = never && !combine->constant && keeps_nonnegative(*combine);
      }
      if (const auto* matmul = std::get_if<MatMul>(&op.kind)) never = never && !matmul->constant && matmul->scale >= 0;
      const auto* reduce = std::get_if<Reduce>(&op.kind);
      if (reduce != nullptr && reduce->statistic == Statistic::log_sum_exp) never = false;
      if (std::holds_alternative<ChannelAffine>(op.kind) || std::holds_alternative<Normalize>(op.kind)) never = false;
      if (const Elementwise* then = then_of(op.kind)) pass(*then);
    }
    known[static_cast<std::size_t>(op.output)] = never;
  }
  return known;
}

Padding operator+(const Padding& a, const Padding& b) {
  return {a.top + b.top, a.bottom + b.bottom, a.left + b.left, a.right + b.right};
}

bool fold_into_convolution(GraphEdit& graph, int reader, const Padding& pad) {
  ConvLayer& layer = graph.layer(*graph.as<Convolution>(reader));
  ConvShape shape = layer.shape;
  shape.pad = shape.pad + pad;
  shape.in_h -= pad.top + pad.bottom;
  shape.in_w -= pad.left + pad.right;
  if (!verify(shape).empty()) return false;
  layer.shape = shape;
  return true;
}

bool fold_into_pool(GraphEdit& graph, int reader, const Padding& pad, const std::vector<std::int64_t>& input,
                    bool never_negative) {
  Operator op = graph.op(reader);
  auto& pool = std::get<Pool>(op.kind);
  if (pool.kind == PoolKind::max && !never_negative) return false;
  if (pool.kind == PoolKind::average && !pool.count_padding) {
    if (pool.pad != Padding{}) return false;  // one padding would count and one not
    pool.count_padding = true;
  }
  pool.pad = pool.pad + pad;
  // Rounding up, windows that begin in the zeros were there, and now would not be.
  std::vector<std::string> faults;
  if (output_shape(graph.network(), op, {input}, faults) != graph.tensor(op.output).shape) return false;
  graph.set_kind(reader, pool);
  return true;
}

}  // namespace

Rewritten fold_pad(Network network) {
  const std::vector<bool> never_negative = never_negative_tensors(network);
  GraphEdit graph(std::move(network));
  int changes = 0;
  for (int op = 0; op < graph.operators(); ++op) {
    const auto* pad = graph.as<Pad>(op);
    if (!pad || pad->value != 0) continue;
    const int input = graph.op(op).inputs[0], output = graph.op(op).output;
    const int reader = graph.only_reader(output);
    bool folded = false;
    if (graph.as<Convolution>(reader) && graph.op(reader).inputs[0] == output) {
      folded = fold_into_convolution(graph, reader, pad->pad);
    } else if (graph.as<Pool>(reader)) {
      folded = fold_into_pool(graph, reader, pad->pad, graph.tensor(input).shape,
                              never_negative[static_cast<std::size_t>(input)]);
    }
    if (!folded) continue;
    graph.remove(op);
    graph.redirect(output, input);
    ++changes;
  }
  return {graph.finish(), changes};
}

}  // namespace burin
