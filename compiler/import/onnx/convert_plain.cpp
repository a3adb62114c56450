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

// Of activations, which are real numbers.
void convert_cast(const Node& node, GraphBuilder& graph) {
  const OnnxType& to = read_cast_type(node);
  if (!is_float(to.type)) {
    node.unsupported(
        "it casts an activation to {}; burin casts activations to floating-point types, which changes "
        "nothing",
        to.name);
  }
  convert_identity(node, graph);
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
