// QuantizeLinear and DequantizeLinear: constants become real numbers, pairs around activations are simulated or
// dropped.
#include "test/import/files.h"
#include "test/import/onnx_faults.h"
#include "test/import/onnx_model.h"

using namespace burin;
using namespace burin_test;

namespace {

constexpr auto kInt8 = onnx::TensorProto::INT8, kUint8 = onnx::TensorProto::UINT8, kInt32 = onnx::TensorProto::INT32;

void quantized(OnnxModel& model, const std::string& name, onnx::TensorProto::DataType type,
               const std::vector<std::int64_t>& dims, const std::vector<int>& values) {
  onnx::TensorProto& tensor = *model.proto.mutable_graph()->add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(type);
  for (const std::int64_t dim : dims) tensor.add_dims(dim);
  for (const int value : values) tensor.add_int32_data(value);
}

// x, through a pair, and what is behind it.
OnnxModel with_pair(onnx::TensorProto::DataType type, int zero_point, float scale = 0.5F, const std::string& from = "x",
                    const std::string& to = "y") {
  OnnxModel model = OnnxModel::of_image({2, 3, 3});
  model.floats("scale", {}, {scale});
  quantized(model, "zero", type, {}, {zero_point});
  model.add_node("QuantizeLinear", {from, "scale", "zero"}, "q");
  model.add_node("DequantizeLinear", {"q", "scale", "zero"}, to);
  return model;
}

ImportOptions dropping() {
  ImportOptions options;
  options.quantized = QuantizedPairs::drop;
  return options;
}

const Elementwise* quantize_of(const Network& network) {
  for (const Operator& op : network.operators) {
    const auto* element = std::get_if<Elementwise>(&op.kind);
    if (element != nullptr && element->function == ElementFunction::quantize) return element;
  }
  return nullptr;
}

bool has_note(const Network& network, const std::string& part) {
  return std::ranges::any_of(network.notes,
                             [&](const std::string& note) { return note.find(part) != std::string::npos; });
}

}  // namespace

TEST_CASE("onnx quantized: weights and biases become real numbers, and zeros stay zero") {
  OnnxModel model = OnnxModel::of_image({2, 3, 3});
  quantized(model, "w", kInt8, {2, 2, 1, 1}, {7, -128, 3, 5});
  model.floats("w scale", {2}, {0.5F, 0.25F});
  quantized(model, "w zero", kInt8, {2}, {7, 5});
  model.add_node("DequantizeLinear", {"w", "w scale", "w zero"}, "weights").set("axis", 0);
  quantized(model, "b", kInt32, {2}, {1000000, 0});
  model.floats("b scale", {}, {0.001F});
  model.add_node("DequantizeLinear", {"b", "b scale"}, "bias");
  model.add_node("Conv", {"x", "weights", "bias"});
  const Network network = model.import();
  REQUIRE(network.layers.size() == 1);
  CHECK(network.layers[0].weights == std::vector<float>{0, -67.5F, -0.5F, 0});
  CHECK(network.layers[0].bias == std::vector<float>{1000000 * 0.001F, 0});
  CHECK(quantize_of(network) == nullptr);
  CHECK_FALSE(has_note(network, "pair"));
}

TEST_CASE("onnx quantized: scales of another axis, and constants that the graph quantizes") {
  OnnxModel model = OnnxModel::of_image({2, 3, 3});
  model.floats("w", {1, 2, 1, 1}, {0.74F, 100});
  model.floats("scale", {2}, {0.5F, 0.25F});
  quantized(model, "zero", kUint8, {2}, {128, 0});
  model.add_node("QuantizeLinear", {"w", "scale", "zero"}, "q").set("axis", 1);
  model.add_node("DequantizeLinear", {"q", "scale", "zero"}, "weights").set("axis", 1);
  model.add_node("Conv", {"x", "weights"});
  CHECK(model.import().layers.at(0).weights == std::vector<float>{0.5F, 255 * 0.25F});
}

TEST_CASE("onnx quantized: a pair is simulated by one function") {
  const Network network = with_pair(kUint8, 100).import();
  const Elementwise* quantize = quantize_of(network);
  REQUIRE(quantize != nullptr);
  CHECK(quantize->alpha == 0.5F);
  CHECK(quantize->beta == -100);
  CHECK(has_note(network, "1 pair of QuantizeLinear and DequantizeLinear is simulated"));
  CHECK(quantize_of(with_pair(kInt8, 0).import())->beta == -128);
}

TEST_CASE("onnx quantized: a pair is dropped, but for what it cuts off below zero") {
  const auto relus = [](const Network& network) {
    return std::ranges::count_if(network.operators, [](const Operator& op) {
      const auto* element = std::get_if<Elementwise>(&op.kind);
      return element != nullptr && element->function == ElementFunction::relu;
    });
  };
  const Network signed_pair = with_pair(kInt8, 0).import(dropping());
  CHECK(quantize_of(signed_pair) == nullptr);
  CHECK(relus(signed_pair) == 0);
  CHECK(signed_pair.quantized == QuantizedPairs::drop);
  CHECK(has_note(signed_pair, "left out; 0 of them"));
  for (const auto& [type, zero_point] : {std::pair{kUint8, 0}, std::pair{kInt8, -128}}) {
    const Network clipping = with_pair(type, zero_point).import(dropping());
    CHECK(quantize_of(clipping) == nullptr);
    CHECK(relus(clipping) == 1);
    CHECK(has_note(clipping, "left out; 1 of them"));
  }
}

TEST_CASE("onnx quantized: what is not a pair of 8 bits is refused") {
  refuses(with_pair(onnx::TensorProto::INT16, 0), {"int16", "8 bits", "--quantized drop"});
  CHECK_NOTHROW(with_pair(onnx::TensorProto::INT16, 0).import(dropping()));
  rejects(with_pair(kUint8, 0, 0.0F), {"scale is 0"});
  rejects(with_pair(kUint8, 0, -1.0F), {"scale is -1"});
  refuses(with_pair(kInt32, 0), {"int32", "8 and 16 bits"});

  OnnxModel other = with_pair(kUint8, 0, 0.5F, "x", "z");
  other.floats("other scale", {}, {0.25F});
  other.add_node("DequantizeLinear", {"q", "other scale", "zero"});
  refuses(other, {"another than that of its QuantizeLinear"});

  OnnxModel integers = with_pair(kUint8, 0, 0.5F, "x", "z");
  integers.add_node("Relu", {"q"});
  refuses(integers, {"computes with the integers of 'q'", "QDQ"});

  OnnxModel channels = OnnxModel::of_image({2, 3, 3});
  channels.floats("scale", {2}, {0.5F, 0.25F});
  quantized(channels, "zero", kInt8, {2}, {0, 0});
  channels.add_node("QuantizeLinear", {"x", "scale", "zero"}, "q");
  channels.add_node("DequantizeLinear", {"q", "scale", "zero"});
  refuses(channels, {"2 scales", "--quantized drop"});
}
