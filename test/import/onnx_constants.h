// What the importer makes of constants, seen as the bias of a fully connected layer.
#pragma once

#include <string>
#include <vector>

#include "test/import/onnx_model.h"

namespace burin_test {

using Dims = std::vector<std::int64_t>;

// x has one feature; `c` is what add_layer() takes as the bias.
inline OnnxModel constants_model(int opset = 13) { return OnnxModel::of_image({1}, opset); }

// y = 0 * x + c, of a constant with so many numbers.
inline void add_layer(OnnxModel& model, std::int64_t numbers, bool real = true) {
  model.floats("no weights", {1, numbers}, std::vector<float>(static_cast<std::size_t>(numbers), 0.0F));
  model.integers("flat", {numbers});
  model.add_node("Reshape", {"c", "flat"}, "flat c");
  if (!real) model.add_node("Cast", {"flat c"}, "real c").set("to", 1);
  model.add_node("Gemm", {"x", "no weights", real ? "flat c" : "real c"});
}

inline std::vector<float> bias_of(OnnxModel model, std::int64_t numbers, bool real = true) {
  add_layer(model, numbers, real);
  return last<burin::Linear>(model.import()).bias;
}

inline void booleans(OnnxModel& model, const std::string& name, const std::vector<bool>& values) {
  auto& tensor = *model.proto.mutable_graph()->add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(onnx::TensorProto::BOOL);
  tensor.add_dims(static_cast<std::int64_t>(values.size()));
  for (const bool value : values) tensor.add_int32_data(value ? 1 : 0);
}

}  // namespace burin_test
