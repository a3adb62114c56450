// Operators that change nothing at inference, and constants.
#include <algorithm>

#include "compiler/import/onnx/converters.h"
#include "ir/printable.h"

namespace burin {
namespace {

// What flows is copied by an operator, which passes remove; the rest has one more name.
void pass_on(const Node& node, GraphBuilder& graph) {
  if (graph.is_activation(node, 0)) return graph.emit(node, Identity{}, {graph.activation(node, 0)});
  graph.define(node, graph.value(node, 0));
}

}  // namespace

void convert_identity(const Node& node, GraphBuilder& graph) { pass_on(node, graph); }

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
  graph.emit(node, Identity{}, {graph.activation(node, 0)});
}

void convert_cast(const Node& node, GraphBuilder& graph) {
  const std::int64_t to = node.attributes().integer("to", 0);
  node.attributes().boolean("saturate", true);  // of 8-bit floats, which are refused
  const auto is_one_of = [&](std::initializer_list<int> types) {
    return std::any_of(types.begin(), types.end(), [&](int type) { return type == to; });
  };
  using ::onnx::TensorProto;
  const bool to_float =
      is_one_of({TensorProto::FLOAT, TensorProto::DOUBLE, TensorProto::FLOAT16, TensorProto::BFLOAT16});
  const bool to_integer = is_one_of({TensorProto::INT32, TensorProto::INT64});
  const bool is_flowing = graph.is_activation(node, 0);
  bool is_float = is_flowing, is_integer = false;
  if (!is_flowing) {
    const Value value = graph.value(node, 0);
    const auto* const stored = std::get_if<StoredTensor>(&value);
    is_float = stored != nullptr && stored->is_float();
    is_integer = stored == nullptr || stored->is_integer();
  }
  if (!(is_float && to_float) && !(is_integer && to_integer)) {
    node.unsupported("it casts to ONNX's type {}; burin casts between floating-point types, and between integers", to);
  }
  pass_on(node, graph);
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
