// Functions of single numbers.
#include <algorithm>
#include <cmath>
#include <limits>

#include "compiler/import/onnx/converters.h"
#include "compiler/import/onnx/operands.h"
#include "ir/printable.h"

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

// Those that have no attributes.
struct NamedFunction {
  std::string_view op;
  ElementFunction function;
};
constexpr NamedFunction kPlainFunctions[] = {
    {"Abs", ElementFunction::absolute},
    {"Acos", ElementFunction::acos},
    {"Acosh", ElementFunction::acosh},
    {"Asin", ElementFunction::asin},
    {"Asinh", ElementFunction::asinh},
    {"Atan", ElementFunction::atan},
    {"Atanh", ElementFunction::atanh},
    {"Ceil", ElementFunction::ceil},
    {"Cos", ElementFunction::cosine},
    {"Cosh", ElementFunction::cosh},
    {"Erf", ElementFunction::erf},
    {"Exp", ElementFunction::exp},
    {"Floor", ElementFunction::floor},
    {"HardSwish", ElementFunction::hard_swish},
    {"Log", ElementFunction::log},
    {"Mish", ElementFunction::mish},
    {"Reciprocal", ElementFunction::reciprocal},
    {"Relu", ElementFunction::relu},
    {"Round", ElementFunction::round},
    {"Sigmoid", ElementFunction::sigmoid},
    {"Sign", ElementFunction::sign},
    {"Sin", ElementFunction::sine},
    {"Sinh", ElementFunction::sinh},
    {"Softplus", ElementFunction::softplus},
    {"Softsign", ElementFunction::softsign},
    {"Sqrt", ElementFunction::sqrt},
    {"Tan", ElementFunction::tangent},
    {"Tanh", ElementFunction::tanh},
};

}  // namespace

void convert_plain_function(const Node& node, GraphBuilder& graph) {
  const auto* const found = std::ranges::find(kPlainFunctions, node.op(), &NamedFunction::op);
  BURIN_CHECK(found != std::end(kPlainFunctions), "{} is no function", node.op());
  emit_function(node, graph, found->function);
}

void convert_leaky_relu(const Node& node, GraphBuilder& graph) {
  constexpr float kDefaultSlope = 0.01F;
  emit_function(node, graph, ElementFunction::leaky_relu, node.attributes().number("alpha", kDefaultSlope));
}

void convert_hard_sigmoid(const Node& node, GraphBuilder& graph) {
  constexpr float kDefaultAlpha = 0.2F, kDefaultBeta = 0.5F;
  emit_function(node, graph, ElementFunction::hard_sigmoid, node.attributes().number("alpha", kDefaultAlpha),
                node.attributes().number("beta", kDefaultBeta));
}

void convert_elu(const Node& node, GraphBuilder& graph) {
  emit_function(node, graph, ElementFunction::elu, node.attributes().number("alpha", 1), 1);
}

void convert_selu(const Node& node, GraphBuilder& graph) {
  constexpr float kDefaultAlpha = 1.67326319F, kDefaultGamma = 1.05070102F;
  const float alpha = node.attributes().number("alpha", kDefaultAlpha);
  const float gamma = node.attributes().number("gamma", kDefaultGamma);
  emit_function(node, graph, ElementFunction::elu, alpha * gamma, gamma);
}

void convert_celu(const Node& node, GraphBuilder& graph) {
  const float alpha = node.attributes().number("alpha", 1);
  if (alpha == 0) node.bad_input("attribute 'alpha' is 0, by which it divides");
  emit_function(node, graph, ElementFunction::celu, alpha);
}

void convert_gelu(const Node& node, GraphBuilder& graph) {
  const std::string by = node.attributes().text("approximate", "none");
  if (by != "none" && by != "tanh") {
    node.bad_input("attribute 'approximate' is {}, it must be 'none' or 'tanh'", in_quotes(by));
  }
  emit_function(node, graph, by == "none" ? ElementFunction::gelu : ElementFunction::gelu_tanh);
}

void convert_thresholded_relu(const Node& node, GraphBuilder& graph) {
  emit_function(node, graph, ElementFunction::thresholded_relu, node.attributes().number("alpha", 1));
}

void convert_shrink(const Node& node, GraphBuilder& graph) {
  constexpr float kDefaultLambda = 0.5F;
  emit_function(node, graph, ElementFunction::shrink, node.attributes().number("lambd", kDefaultLambda),
                node.attributes().number("bias", 0));
}

void convert_neg(const Node& node, GraphBuilder& graph) { emit_scaled(node, graph, graph.activation(node, 0), -1); }

void convert_clip(const Node& node, GraphBuilder& graph) {
  constexpr float kLowest = std::numeric_limits<float>::lowest(), kLargest = std::numeric_limits<float>::max();
  const float high = bound(node, graph, 2, "max", kLargest);
  const float low = std::min(bound(node, graph, 1, "min", kLowest), high);  // the upper bound counts
  if (low == 0 && high >= kLargest) return emit_function(node, graph, ElementFunction::relu);
  emit_function(node, graph, ElementFunction::clip, low, high);
}

}  // namespace burin
