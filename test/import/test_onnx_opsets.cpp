// What operators of ONNX were called, and where their numbers stood, in the oldest opset that burin reads and after.
#include "test/import/files.h"
#include "test/import/onnx_constants.h"
#include "test/import/onnx_faults.h"

using namespace burin;
using namespace burin_test;

namespace {

constexpr int kOldest = 6;

// x[2,3,3] and a list of two.
OnnxModel with_list(const std::string& op) {
  OnnxModel model = OnnxModel::of_image({2, 3, 3}, kOldest);
  model.floats("c", {2});
  model.add_node(op, {"x", "c"});
  return model;
}

}  // namespace

TEST_CASE("onnx opset 6: the second operand is aligned by 'axis'") {
  OnnxModel model = with_list("Mul");
  NodeMaker node(*model.proto.mutable_graph()->mutable_node(0));
  SECTION("channels") {
    node.set("broadcast", 1).set("axis", 1);
    CHECK(last<ChannelAffine>(model.import()).scale == std::vector<float>{1, 2});
  }
  SECTION("channels, from the end") {
    node.set("broadcast", 1).set("axis", -3);
    CHECK(last<ChannelAffine>(model.import()).scale == std::vector<float>{1, 2});
  }
  SECTION("without 'axis' it is the last one") {
    node.set("broadcast", 1);
    refuses(model, {"'c' has the shape [2]", "along each axis, as many values or one"});
  }
  SECTION("without 'broadcast' both are of one shape") {
    rejects(model, {"[1,2,3,3] and [2]", "without the attribute 'broadcast'"});
  }
  SECTION("beyond the axes") {
    node.set("broadcast", 1).set("axis", 4);
    rejects(model, {"'axis' is 4"});
  }
}

TEST_CASE("onnx opset 6: a gate for each channel, of another rank") {
  OnnxModel model = OnnxModel::of_image({2, 3, 3}, kOldest);
  model.add_node("GlobalAveragePool", {"x"}, "mean");
  model.add_node("Flatten", {"mean"}, "flat");
  model.add_node("Mul", {"x", "flat"}).set("broadcast", 1).set("axis", 0);
  const Network network = model.import();
  CHECK(kinds(network) == "global_average_pool reshape reshape combine");
  CHECK(last_shape(network) == Dims{2, 3, 3});
}

TEST_CASE("onnx opset 6: of constants") {
  OnnxModel model = constants_model(kOldest);
  model.floats("a", {2, 3});
  model.floats("b", {2}, {10, 20});
  model.add_node("Add", {"a", "b"}, "c").set("broadcast", 1).set("axis", 0);
  model.floats("no weights", {1, 6}, std::vector<float>(6, 0.0F));
  model.integers("flat", {6});
  model.add_node("Reshape", {"c", "flat"}, "bias");
  model.add_node("Gemm", {"x", "no weights", "bias"}).set("broadcast", 1);
  CHECK(last<Linear>(model.import()).bias == std::vector<float>{11, 12, 13, 24, 25, 26});
}

TEST_CASE("onnx opset 6: what is of inference says so") {
  const auto normalization = [](int is_test) {
    OnnxModel model = OnnxModel::of_image({2, 3, 3}, kOldest);
    for (const char* name : {"scale", "shift", "mean", "variance"}) model.floats(name, {2});
    model.add_node("BatchNormalization", {"x", "scale", "shift", "mean", "variance"}).set("is_test", is_test);
    return model;
  };
  CHECK(kinds(normalization(1).import()) == "channel_affine");
  refuses(normalization(0), {"'is_test' is 0", "model.eval()"});
  OnnxModel dropout = OnnxModel::of_image({2, 3, 3}, kOldest);
  dropout.add_node("Dropout", {"x"});
  refuses(dropout, {"'is_test' is 0"});
}

TEST_CASE("onnx opset 23: the newest forms") {
  OnnxModel model = OnnxModel::of_image({4, 6, 6}, 23);
  model.add_node("AveragePool", {"x"}, "pooled").set("kernel_shape", Dims{2, 2}).set("dilations", Dims{1, 1});
  model.add_node("Shape", {"pooled"}, "batch").set("end", 1);
  model.integers("rest", {-1});
  model.add_node("Concat", {"batch", "rest"}, "wanted").set("axis", 0);
  model.add_node("Reshape", {"pooled", "wanted"}).set("allowzero", 1);
  CHECK(last_shape(model.import()) == Dims{100});
}
