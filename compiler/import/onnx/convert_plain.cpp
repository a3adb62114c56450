// Operators that change nothing at inference, and constants.
#include <algorithm>

#include "compiler/import/onnx/converters.h"
#include "compiler/import/onnx/onnx_types.h"
#include "ir/printable.h"

namespace burin {

void convert_identity(const Node& node, GraphBuilder& graph) { graph.pass_on(node, node.input(0), node.output()); }

void convert_dropout(const Node& node, GraphBuilder& graph) {
  constexpr int kModeInput = 2;
  constexpr float kDefaultRatio = 0.5F;
  node.attributes().number("ratio", kDefaultRatio);  // both are of training
  node.attributes().integer("seed", 0);
  if (node.has_input(kModeInput)) {
    const StoredTensor mode = graph.constant(node, kModeInput, "training mode");
    const std::vector<float> values = mask_values(mode.view);
    if (std::any_of(values.begin(), values.end(), [](float value) { return value != 0; })) {
      node.unsupported("its training mode is on; export the model for inference (model.eval())");
    }
  }
  constexpr int kLastTestFlagOpset = 6;
  if (node.opset() <= kLastTestFlagOpset && !node.attributes().boolean("is_test", false)) {
    node.unsupported("attribute 'is_test' is 0; export the model for inference (model.eval())");
  }
  convert_identity(node, graph);
}

namespace {

// Booleans are numbers already, so that all casts to numbers change nothing.
void emit_cast(const Node& node, GraphBuilder& graph, bool to_boolean) {
  if (to_boolean && !graph.is_boolean(node, 0)) {
    const Elementwise is_zero{ElementFunction::within, 0, 0};
    graph.emit(node, is_zero, {graph.emit_inner(node, "is_zero", is_zero, {graph.activation(node, 0)})});
  } else {
    convert_identity(node, graph);
  }
  graph.mark_boolean(node.output(), to_boolean);
}

}  // namespace

// It casts activations, which are real numbers or booleans.
void convert_cast(const Node& node, GraphBuilder& graph) {
  const OnnxType& to = read_cast_type(node);
  if (!is_float(to.type) && to.type != StoredType::boolean) {
    node.unsupported(
        "it casts an activation to {}; burin casts activations to floating-point types, which changes "
        "nothing, and to BOOL",
        to.name);
  }
  emit_cast(node, graph, to.type == StoredType::boolean);
}

// To the type of another tensor, of which at least one is an activation.
void convert_cast_like(const Node& node, GraphBuilder& graph) {
  node.attributes().boolean("saturate", true);  // of 8-bit floats
  const SharedConstant like = graph.is_activation(node, 1) ? nullptr : graph.numbers(node, 1);
  const bool to_boolean = like == nullptr ? graph.is_boolean(node, 1) : like->type == StoredType::boolean;
  if (like != nullptr && !like->is_real() && !to_boolean) {
    node.unsupported("it casts an activation to integers; burin casts activations to floating-point types and to BOOL");
  }
  if (graph.is_activation(node, 0)) return emit_cast(node, graph, to_boolean);
  const SharedConstant numbers = graph.numbers(node, 0);
  if (to_boolean || numbers->depends_on_batch()) {
    node.unsupported("its input {} is a constant; burin casts such to real numbers alone", in_quotes(node.input(0)));
  }
  ConstantTensor made{StoredType::f32, numbers->shape, {}};
  if (numbers->is_real()) {
    made.numbers = numbers->reals();
  } else {
    const std::vector<std::int64_t>& integers = numbers->integers().values;
    made.numbers = Numbers<double>(std::vector<double>(integers.begin(), integers.end()));
  }
  graph.define_constant(node, node.output(), std::move(made));
}

void convert_constant(const Node& node, GraphBuilder& graph) {
  const Attributes& attributes = node.attributes();
  if (const auto* const tensor = attributes.tensor("value")) return graph.define(node, tensor);
  if (const auto* const sparse = attributes.sparse_tensor("sparse_value")) {
    return graph.define(node, sparse);
  }
  const std::string& path = graph.path();
  if (attributes.has("value_float")) {
    return graph.define(node, float_tensor(node.output(), {}, {attributes.number("value_float", 0)}, path));
  }
  if (attributes.has("value_int")) {
    return graph.define(node, integer_tensor(node.output(), {}, {attributes.integer("value_int", 0)}, path));
  }
  if (const auto numbers = attributes.numbers("value_floats")) {
    return graph.define(node,
                        float_tensor(node.output(), {static_cast<std::int64_t>(numbers->size())}, *numbers, path));
  }
  if (const auto integers = attributes.integers("value_ints")) {
    return graph.define(node,
                        integer_tensor(node.output(), {static_cast<std::int64_t>(integers->size())}, *integers, path));
  }
  node.unsupported("holds no numbers");
}

}  // namespace burin
