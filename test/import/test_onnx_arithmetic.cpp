// Add, Sub, Mul, Div and Sum of ONNX models.
#include "test/import/files.h"
#include "test/import/onnx_faults.h"
#include "test/import/onnx_model.h"

using namespace burin;
using namespace burin_test;

namespace {

using Dims = std::vector<std::int64_t>;

// x[2,3,3] and a constant of the shape.
OnnxModel with_constant(const std::string& op, const Dims& dims, bool constant_first = false) {
  OnnxModel model = OnnxModel::of_image({2, 3, 3});
  model.floats("c", dims);
  model.add_node(op, constant_first ? std::vector<std::string>{"c", "x"} : std::vector<std::string>{"x", "c"});
  return model;
}

}  // namespace

TEST_CASE("onnx arithmetic: a constant for each channel") {
  for (const Dims& dims : {Dims{2, 1, 1}, Dims{1, 2, 1, 1}}) {
    const auto added = last<ChannelAffine>(with_constant("Add", dims).import());
    CHECK(added.scale == std::vector<float>{1, 1});
    CHECK(added.shift == std::vector<float>{1, 2});
    const auto scaled = last<ChannelAffine>(with_constant("Mul", dims, true).import());
    CHECK(scaled.scale == std::vector<float>{1, 2});
    CHECK(scaled.shift == std::vector<float>{0, 0});
  }
}

TEST_CASE("onnx arithmetic: one number for all channels") {
  for (const Dims& dims : {Dims{}, Dims{1}, Dims{1, 1, 1}}) {
    CHECK(last<ChannelAffine>(with_constant("Add", dims).import()).shift == std::vector<float>{1, 1});
  }
}

TEST_CASE("onnx arithmetic: subtracted and divided") {
  const Dims dims = {2, 1, 1};
  const auto less = last<ChannelAffine>(with_constant("Sub", dims).import());
  CHECK(less.scale == std::vector<float>{1, 1});
  CHECK(less.shift == std::vector<float>{-1, -2});
  const auto from = last<ChannelAffine>(with_constant("Sub", dims, true).import());
  CHECK(from.scale == std::vector<float>{-1, -1});
  CHECK(from.shift == std::vector<float>{1, 2});
  CHECK(last<ChannelAffine>(with_constant("Div", dims).import()).scale == std::vector<float>{1, 0.5F});
  const auto divided = last<Combine>(with_constant("Div", dims, true).import());
  CHECK(divided.combination == Combination::divide);
  CHECK(divided.swapped);
  OnnxModel inverse = OnnxModel::of_image({2, 3, 3});
  inverse.floats("c", {}, {1});
  inverse.add_node("Div", {"c", "x"});
  CHECK(last<Elementwise>(inverse.import()).function == ElementFunction::reciprocal);
  OnnxModel zero = OnnxModel::of_image({2, 3, 3});
  zero.floats("c", {}, {0});
  zero.add_node("Div", {"x", "c"});
  rejects(zero, {"divisor 'c' holds 0"});
}

TEST_CASE("onnx arithmetic: constants of other shapes are operands") {
  const auto added = last<Combine>(with_constant("Add", {2, 3, 3}).import());
  CHECK(added.combination == Combination::add);
  CHECK(added.constant->shape == Dims{2, 3, 3});
  CHECK(last<Combine>(with_constant("Mul", {3}).import()).constant->shape == Dims{1, 1, 3});
  const auto less = last<Combine>(with_constant("Sub", {3, 1}, true).import());
  CHECK(less.constant->shape == Dims{1, 3, 1});
  CHECK(less.swapped);
  const auto divided = last<Combine>(with_constant("Div", {3}).import());  // a product with what divides 1 by it
  CHECK(divided.combination == Combination::multiply);
  CHECK(divided.constant->values[1] == 0.5F);
  refuses(with_constant("Add", {2, 2, 3}), {"'c' has the shape [2,2,3]", "2x3x3", "as many values or one"});
  refuses(with_constant("Mul", {1, 1, 2, 1, 1}), {"[1,1,2,1,1]"});
  refuses(with_constant("Mul", {2, 2, 3, 3}), {"[2,2,3,3]"});
}

TEST_CASE("onnx arithmetic: of two activations") {
  OnnxModel model = OnnxModel::of_image({2, 3, 3});
  model.add_node("Sigmoid", {"x"}, "gate");
  SECTION("the swish of exporters stays two operators") {
    model.add_node("Mul", {"x", "gate"});
    CHECK(kinds(model.import()) == "elementwise combine");
    CHECK(last<Combine>(model.import()).combination == Combination::multiply);
  }
  SECTION("added") {
    model.add_node("Add", {"gate", "x"});
    CHECK(last<Combine>(model.import()).combination == Combination::add);
  }
  SECTION("subtracted") {
    model.add_node("Sub", {"x", "gate"});
    const Network network = model.import();
    CHECK(kinds(network) == "elementwise combine");
    CHECK(last<Combine>(network).combination == Combination::subtract);
    CHECK(network.operators[1].inputs[0] == network.inputs[0]);
  }
  SECTION("divided") {
    model.add_node("Div", {"x", "gate"});
    CHECK(last<Combine>(model.import()).combination == Combination::divide);
  }
  SECTION("several") {
    model.add_node("Sum", {"x", "gate", "x"});
    CHECK(kinds(model.import()) == "elementwise combine combine");
  }
}

TEST_CASE("onnx arithmetic: a gate for each channel may come first") {
  OnnxModel model = OnnxModel::of_image({2, 3, 3});
  model.add_node("GlobalAveragePool", {"x"}, "gate");
  model.add_node("Mul", {"gate", "x"});
  const Network network = model.import();
  CHECK(network.operators[1].inputs == std::vector<int>{network.inputs[0], network.operators[0].output});
  CHECK(last_shape(network) == Dims{2, 3, 3});
}

TEST_CASE("onnx arithmetic: shapes that do not fit") {
  OnnxModel model = OnnxModel::of_image({2, 3, 3});
  model.add_node("MaxPool", {"x"}, "small").set("kernel_shape", Dims{2, 2});
  model.add_node("Add", {"x", "small"});
  refuses(model, {"2x3x3", "2x2x2"});
}

TEST_CASE("onnx arithmetic: a pruning mask that the exporter left") {
  OnnxModel model = OnnxModel::of_image({2, 3, 3});
  model.floats("original", {1, 2, 1, 1}, {3, 4});
  model.floats("mask", {1, 2, 1, 1}, {0, 1});
  model.add_node("Mul", {"original", "mask"}, "w");
  model.add_node("Conv", {"x", "w"});
  CHECK(model.import().layers.at(0).weights == std::vector<float>{0, 4});
  OnnxModel repeated = OnnxModel::of_image({2, 3, 3});
  repeated.floats("original", {1, 2, 1, 2}, {3, 4, 5, 6});
  repeated.floats("mask", {2, 1, 1}, {0, 1});
  repeated.add_node("Mul", {"original", "mask"}, "w");
  repeated.add_node("Conv", {"x", "w"});
  CHECK(repeated.import().layers.at(0).weights == std::vector<float>{0, 0, 5, 6});
  OnnxModel other = OnnxModel::of_image({2, 3, 3});
  other.floats("original", {1, 2, 1, 1});
  other.floats("mask", {3, 1, 1});
  other.add_node("Mul", {"original", "mask"}, "w");
  other.add_node("Conv", {"x", "w"});
  rejects(other, {"(Mul)", "[1,2,1,1] and [3,1,1], which do not fit each other"});
}
