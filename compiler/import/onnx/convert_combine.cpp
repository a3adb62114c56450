// Functions of two operands and of lists of them, beside the arithmetic of convert_arithmetic.cpp.
#include <cmath>
#include <limits>

#include "compiler/import/onnx/converters.h"
#include "compiler/import/onnx/operands.h"
#include "ir/printable.h"

namespace burin {
namespace {

// The larger or the smaller of what flows and one finite number, which cut it off.
std::optional<Elementwise> cut_at(Combination combination, float number) {
  constexpr float kEnd = std::numeric_limits<float>::infinity();
  if (!std::isfinite(number)) return std::nullopt;
  if (combination == Combination::larger) {
    return number == 0 ? Elementwise{ElementFunction::relu} : Elementwise{ElementFunction::clip, number, kEnd};
  }
  return combination == Combination::smaller ? std::optional(Elementwise{ElementFunction::clip, -kEnd, number})
                                             : std::nullopt;
}

// All operands of a list, one after the other: activations and constants in any order, of which at least one is none.
// Returns what is left to emit for the last.
Pending over_list(const Node& node, GraphBuilder& graph, Combination combination) {
  int first = 0;
  while (first < node.inputs() && !graph.is_activation(node, first)) ++first;
  if (first == node.inputs()) first = 0;  // all are constants: what follows says so
  Pending pending{Identity{}, {graph.activation(node, first)}};
  for (int i = 0; i < node.inputs(); ++i) {
    if (i == first) continue;
    const int so_far = std::holds_alternative<Identity>(pending.kind)
                           ? pending.inputs[0]
                           : graph.emit_inner(node, to_string(combination), pending.kind, pending.inputs);
    if (const std::optional<float> number = only_number(node, graph, i)) {
      if (const std::optional<Elementwise> cut = cut_at(combination, *number)) {
        pending = {*cut, {met_by_constant(node, graph, i, so_far).x}};
        continue;
      }
    }
    pending = graph.is_activation(node, i)
                  ? combined(node, graph, Combine{combination}, so_far, graph.activation(node, i))
                  : combined(Combine{combination}, met_by_constant(node, graph, i, so_far), false);
  }
  return pending;
}

}  // namespace

void convert_max(const Node& node, GraphBuilder& graph) {
  emit(node, graph, over_list(node, graph, Combination::larger));
}
void convert_min(const Node& node, GraphBuilder& graph) {
  emit(node, graph, over_list(node, graph, Combination::smaller));
}
void convert_sum(const Node& node, GraphBuilder& graph) { emit(node, graph, over_list(node, graph, Combination::add)); }

void convert_mean(const Node& node, GraphBuilder& graph) {
  Pending sum = over_list(node, graph, Combination::add);
  if (node.inputs() == 1) return emit(node, graph, std::move(sum));
  const int whole = graph.emit_inner(node, "sum", std::move(sum.kind), std::move(sum.inputs));
  emit_scaled(node, graph, whole, 1.0F / static_cast<float>(node.inputs()));
}

void convert_pow(const Node& node, GraphBuilder& graph) {
  if (graph.is_activation(node, 0)) {
    const int x = graph.activation(node, 0);
    if (graph.is_activation(node, 1)) {
      return emit(node, graph, combined(node, graph, Combine{Combination::power}, x, graph.activation(node, 1)));
    }
    const std::optional<float> exponent = only_number(node, graph, 1);
    if (!exponent) {
      return emit(node, graph, combined(Combine{Combination::power}, met_by_constant(node, graph, 1, x), false));
    }
    if (!std::isfinite(*exponent)) node.bad_input("its exponent is {}, it must be finite", *exponent);
    const ElementFunction function = *exponent == 0.5F ? ElementFunction::sqrt
                                     : *exponent == -1 ? ElementFunction::reciprocal
                                                       : ElementFunction::power;
    return graph.emit(node, Elementwise{function, function == ElementFunction::power ? *exponent : 0, 0}, {x});
  }
  const int exponent = graph.activation(node, 1);
  emit(node, graph, combined(Combine{Combination::power}, met_by_constant(node, graph, 0, exponent), true));
}

void convert_mod(const Node& node, GraphBuilder& graph) {
  if (!node.attributes().boolean("fmod", false)) node.bad_input("attribute 'fmod' must be 1 for real numbers");
  emit(node, graph, of_both(node, graph, Combine{Combination::remainder}));
}

void convert_prelu(const Node& node, GraphBuilder& graph) {
  const int x = graph.activation(node, 0);
  if (graph.is_activation(node, 1)) {
    const int slope = graph.activation(node, 1);
    return graph.emit(node, Combine{Combination::prelu}, {x, slope});
  }
  const std::optional<float> slope = only_number(node, graph, 1);
  if (slope && std::isfinite(*slope)) {
    return graph.emit(node, Elementwise{ElementFunction::leaky_relu, *slope, 0}, {x});
  }
  emit(node, graph, combined(Combine{Combination::prelu}, met_by_constant(node, graph, 1, x), false));
}

}  // namespace burin
