// Functions of single numbers.
#include <cmath>
#include <limits>

#include "compiler/import/onnx/converters.h"

namespace burin {
namespace {

void emit_function(const Node& node, GraphBuilder& graph, ElementFunction function, float alpha = 0, float beta = 0) {
  graph.emit(node, Elementwise{function, alpha, beta}, {graph.activation(node, 0)});
}

// Up to opset 10 attributes, later inputs.
float bound(const Node& node, GraphBuilder& graph, int input, const std::string& name, float absent) {
  constexpr int kBoundsAreInputs = 11;
  if (node.opset() < kBoundsAreInputs) return node.attributes().number(name, absent);
  if (!node.has_input(input)) return absent;
  const float value = graph.number(node, input, name);
  if (std::isnan(value)) node.bad_input("its {} is NaN", name);
  return value;
}

}  // namespace

void convert_relu(const Node& node, GraphBuilder& graph) { emit_function(node, graph, ElementFunction::relu); }

void convert_leaky_relu(const Node& node, GraphBuilder& graph) {
  constexpr float kDefaultSlope = 0.01F;
  emit_function(node, graph, ElementFunction::leaky_relu, node.attributes().number("alpha", kDefaultSlope));
}

void convert_sigmoid(const Node& node, GraphBuilder& graph) { emit_function(node, graph, ElementFunction::sigmoid); }

void convert_hard_sigmoid(const Node& node, GraphBuilder& graph) {
  constexpr float kDefaultAlpha = 0.2F, kDefaultBeta = 0.5F;
  emit_function(node, graph, ElementFunction::hard_sigmoid, node.attributes().number("alpha", kDefaultAlpha),
                node.attributes().number("beta", kDefaultBeta));
}

void convert_hard_swish(const Node& node, GraphBuilder& graph) {
  emit_function(node, graph, ElementFunction::hard_swish);
}

void convert_clip(const Node& node, GraphBuilder& graph) {
  constexpr float kLowest = std::numeric_limits<float>::lowest(), kLargest = std::numeric_limits<float>::max();
  const float low = bound(node, graph, 1, "min", kLowest), high = bound(node, graph, 2, "max", kLargest);
  if (low == 0 && high >= kLargest) return emit_function(node, graph, ElementFunction::relu);
  emit_function(node, graph, ElementFunction::clip, low, high);
}

}  // namespace burin
