#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "compiler/network/graph_edit.h"
#include "compiler/network/passes.h"

namespace burin {
namespace {

// As an epilogue has it: with parameters that are finite, where no number is beyond.
Elementwise in_epilogue(Elementwise op) {
  if (op.function != ElementFunction::clip) return op;
  if (op.alpha == 0 && std::isinf(op.beta)) return {ElementFunction::relu};
  constexpr float kMost = std::numeric_limits<float>::max();
  return {op.function, std::max(op.alpha, -kMost), std::min(op.beta, kMost)};
}

class EpilogueFuser {
 public:
  explicit EpilogueFuser(Network network) : graph_(std::move(network)) {
    for (int op = 0; op < graph_.operators(); ++op) {
      int longest = 0;
      for (const int input : graph_.op(op).inputs) {
        const int producer = graph_.producer(input);
        if (producer >= 0) longest = std::max(longest, depths_[static_cast<std::size_t>(producer)]);
      }
      depths_.push_back(longest + 1);
    }
  }

  Rewritten run() {
    for (int op = 0; op < graph_.operators(); ++op) {
      if (fuse_activation(op) || fuse_residual(op)) ++changes_;
    }
    return {graph_.finish(), changes_};
  }

 private:
  bool fuse_activation(int op) {
    const auto* element = graph_.as<Elementwise>(op);
    if (!element) return false;
    const int input = graph_.op(op).inputs[0], output = graph_.op(op).output;
    if (graph_.only_reader(input) != op) return false;
    const int producer = graph_.producer(input);
    if (!end_with(producer, *element)) return false;
    graph_.remove(op);
    graph_.set_output(producer, output);
    return true;
  }

  // Whether the operator computes the function of its results from now on.
  bool end_with(int producer, const Elementwise& element) {
    if (std::optional<Weighted> layer = graph_.weighted(producer)) {
      if (layer->function() || layer->pool() != nullptr) return false;
      layer->set_function(in_epilogue(element));
      return true;
    }
    if (producer < 0 || graph_.removed(producer)) return false;
    OperatorKind kind = graph_.op(producer).kind;
    std::optional<Elementwise>* then = end_of(kind);
    if (then == nullptr || then->has_value()) return false;
    *then = element;
    graph_.set_kind(producer, std::move(kind));
    return true;
  }

  // The convolution that makes a tensor which the sum alone reads, and which can still take a residual: behind a
  // function where nothing follows the sum. Else -1.
  int summand(int sum, int tensor, bool ends) {
    if (graph_.only_reader(tensor) != sum) return -1;
    const int producer = graph_.producer(tensor);
    const auto* convolution = graph_.as<Convolution>(producer);
    if (!convolution) return -1;
    const Epilogue& epilogue = graph_.layer(*convolution).shape.epilogue;
    const bool complete = epilogue.residual || (epilogue.function && !ends) || epilogue.pool;
    return complete ? -1 : producer;
  }

  // The one with the longer way behind it, so that the other can run beside that way; -1 is none.
  int deeper(int first, int second) const {
    if (first < 0 || second < 0) return std::max(first, second);
    const int a = depths_[static_cast<std::size_t>(first)], b = depths_[static_cast<std::size_t>(second)];
    return a != b ? (a > b ? first : second) : std::max(first, second);
  }

  bool fuse_residual(int op) {
    const auto* combine = graph_.as<Combine>(op);
    if (!combine || combine->combination != Combination::add || combine->constant) return false;
    const std::vector<int> inputs = graph_.op(op).inputs;
    if (graph_.tensor(inputs[0]).shape != graph_.tensor(inputs[1]).shape) return false;
    const std::optional<Elementwise> then = combine->then;
    const int first = summand(op, inputs[0], !then), second = summand(op, inputs[1], !then);
    if (first < 0 && second < 0) return false;
    const int convolution = deeper(first, second);
    const int residual = convolution == first ? inputs[1] : inputs[0];
    Operator fused = graph_.op(convolution);
    Epilogue& epilogue = graph_.layer(std::get<Convolution>(fused.kind)).shape.epilogue;
    epilogue.residual = true;
    epilogue.residual_last = epilogue.function.has_value();
    if (then) epilogue.function = in_epilogue(*then);
    fused.inputs.push_back(residual);
    fused.output = graph_.op(op).output;
    // Where the sum stood both are there: nothing else read the convolution.
    graph_.remove(convolution);
    graph_.replace(op, std::move(fused));
    return true;
  }

  GraphEdit graph_;
  std::vector<int> depths_;  // operators on the longest way from a network input, as the graph was at first
  int changes_ = 0;
};

}  // namespace

Rewritten fuse_epilogues(Network network) { return EpilogueFuser(std::move(network)).run(); }

}  // namespace burin
