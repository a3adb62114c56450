// Comparisons, logic and choices of activations. Booleans are 0 and 1.
#include <cmath>
#include <limits>

#include "compiler/import/onnx/converters.h"
#include "compiler/import/onnx/operands.h"
#include "ir/printable.h"

namespace burin {
namespace {

// A comparison as the network knows it: of its operands as they stand, or of the second with the first.
struct Comparison {
  std::string_view op;
  Combination combination;
  bool swapped;
};
constexpr Comparison kComparisons[] = {
    {"Equal", Combination::equal, false},
    {"Less", Combination::less, false},
    {"LessOrEqual", Combination::less_or_equal, false},
    {"Greater", Combination::less, true},
    {"GreaterOrEqual", Combination::less_or_equal, true},
};

// What x is compared with, as the numbers for which it is true. `below`: it is true of those below the number.
Elementwise compared_with(Combination combination, bool below, float number) {
  constexpr float kMost = std::numeric_limits<float>::max(), kInfinity = std::numeric_limits<float>::infinity();
  Elementwise within{ElementFunction::within, number, number};
  if (combination == Combination::equal) return within;
  if (combination == Combination::less) number = std::nextafter(number, below ? -kInfinity : kInfinity);
  return below ? Elementwise{within.function, -kMost, number} : Elementwise{within.function, number, kMost};
}

// It may not be NaN.
std::optional<float> only_known_number(const Node& node, GraphBuilder& graph, int input) {
  const std::optional<float> number = only_number(node, graph, input);
  if (number && std::isnan(*number)) node.bad_input("its operand {} is NaN", in_quotes(node.input(input)));
  return number;
}

// What a Where takes of one of its inputs, 1 or 2, with the number in all other places.
Pending chosen_part(const Node& node, GraphBuilder& graph, int input, float otherwise) {
  Combine op{input == 1 ? Combination::keep : Combination::drop};
  op.otherwise = otherwise;
  if (graph.is_activation(node, input) && graph.is_activation(node, 0)) {
    return combined(node, graph, std::move(op), graph.activation(node, input), graph.activation(node, 0));
  }
  if (graph.is_activation(node, input)) {
    return combined(std::move(op), met_by_constant(node, graph, 0, graph.activation(node, input)), false);
  }
  if (graph.is_activation(node, 0)) {
    return combined(std::move(op), met_by_constant(node, graph, input, graph.activation(node, 0)), true);
  }
  node.unsupported("its condition {} and its input {} are constants of several values; burin takes one number there",
                   in_quotes(node.input(0)), in_quotes(node.input(input)));
}

}  // namespace

void convert_comparison(const Node& node, GraphBuilder& graph) {
  const auto* const found = std::ranges::find(kComparisons, node.op(), &Comparison::op);
  BURIN_CHECK(found != std::end(kComparisons), "{} is no comparison", node.op());
  for (const int input : {0, 1}) {
    const std::optional<float> number = only_known_number(node, graph, input);
    // The largest number is what `within` has for no end.
    if (!number || !(std::abs(*number) < std::numeric_limits<float>::max())) continue;
    const bool below = (input == 1) != found->swapped;
    const int x = met_by_constant(node, graph, input, graph.activation(node, 1 - input)).x;
    return graph.emit(node, compared_with(found->combination, below, *number), {x});
  }
  Combine op{found->combination};
  op.swapped = found->swapped;
  emit(node, graph, of_both(node, graph, std::move(op)));
}

void convert_logic(const Node& node, GraphBuilder& graph) {
  Combine op{node.op() == "And" ? Combination::multiply : Combination::larger};
  if (node.op() == "Xor") op = Combine{Combination::subtract, Elementwise{ElementFunction::absolute}};
  emit(node, graph, of_both(node, graph, std::move(op)));
}

void convert_not(const Node& node, GraphBuilder& graph) {
  graph.emit(node, Elementwise{ElementFunction::within, 0, 0}, {graph.activation(node, 0)});
}

// A NaN is what differs from itself.
void convert_is_nan(const Node& node, GraphBuilder& graph) {
  const int x = graph.activation(node, 0);
  graph.emit(node, Combine{Combination::equal, Elementwise{ElementFunction::within, 0, 0}}, {x, x});
}

// An infinity is beyond the largest float.
void convert_is_inf(const Node& node, GraphBuilder& graph) {
  constexpr float kMost = std::numeric_limits<float>::max();
  int x = graph.activation(node, 0);
  const bool below = node.attributes().boolean("detect_negative", true);
  const bool above = node.attributes().boolean("detect_positive", true);
  if (below && above) x = graph.emit_inner(node, "size", Elementwise{ElementFunction::absolute}, {x});
  const Elementwise cut{ElementFunction::clip, above ? 0 : -kMost, above ? kMost : 0};
  const int finite = graph.emit_inner(node, "finite", cut, {x});
  // Where neither counts, nothing is less than itself.
  graph.emit(node, Combine{Combination::less}, above ? std::vector{finite, x} : std::vector{x, below ? finite : x});
}

// What is not chosen counts as a number of the model, or as zero, so that the two parts are one sum.
void convert_where(const Node& node, GraphBuilder& graph) {
  constexpr int kYes = 1, kNo = 2;
  if (const std::optional<float> no = only_known_number(node, graph, kNo)) {
    if (graph.is_activation(node, 0) || graph.is_activation(node, kYes)) {
      return emit(node, graph, chosen_part(node, graph, kYes, *no));
    }
  }
  if (const std::optional<float> yes = only_known_number(node, graph, kYes)) {
    return emit(node, graph, chosen_part(node, graph, kNo, *yes));
  }
  Pending yes = chosen_part(node, graph, kYes, 0);
  const int first = graph.emit_inner(node, "yes", std::move(yes.kind), std::move(yes.inputs));
  Pending no = chosen_part(node, graph, kNo, 0);
  const int second = graph.emit_inner(node, "no", std::move(no.kind), std::move(no.inputs));
  emit(node, graph, combined(node, graph, Combine{}, first, second));
}

}  // namespace burin
