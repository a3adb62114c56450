// Operators of ONNX models between and after convolutions.
#include <algorithm>
#include <cmath>
#include <limits>

#include "test/import/files.h"
#include "test/import/onnx_faults.h"
#include "test/import/onnx_model.h"

using namespace burin;
using namespace burin_test;

namespace {

using Dims = std::vector<std::int64_t>;

// x of the extents through one node without attributes.
Network through(const std::string& op, const Dims& extents, int opset = 13) {
  OnnxModel model = OnnxModel::of_image(extents, opset);
  model.add_node(op, {"x"});
  return model.import();
}

ElementFunction function(const Network& network) { return last<Elementwise>(network).function; }

OnnxModel batch_norm_model() {
  OnnxModel model = OnnxModel::of_image({2, 3, 3});
  model.floats("gamma", {2}, {2, 4});
  model.floats("beta", {2}, {1, 0});
  model.floats("mean", {2}, {3, -1});
  model.floats("variance", {2}, {3, 15});
  return model;
}

}  // namespace

TEST_CASE("onnx elementwise: functions and their defaults") {
  CHECK(function(through("Relu", {2, 3, 3})) == ElementFunction::relu);
  CHECK(function(through("Sigmoid", {5})) == ElementFunction::sigmoid);
  CHECK(function(through("HardSwish", {2, 3, 3}, 14)) == ElementFunction::hard_swish);
  CHECK(last<Elementwise>(through("LeakyRelu", {2, 3, 3})).alpha == 0.01F);
  const auto hard = last<Elementwise>(through("HardSigmoid", {2, 3, 3}));
  CHECK(hard.function == ElementFunction::hard_sigmoid);
  CHECK(hard.alpha == 0.2F);
  CHECK(hard.beta == 0.5F);
}

TEST_CASE("onnx elementwise: attributes") {
  OnnxModel model = OnnxModel::of_image({2, 3, 3});
  model.add_node("LeakyRelu", {"x"}).set("alpha", 0.25F);
  CHECK(last<Elementwise>(model.import()).alpha == 0.25F);
  OnnxModel infinite = OnnxModel::of_image({2, 3, 3});
  infinite.add_node("LeakyRelu", {"x"}).set("alpha", std::numeric_limits<float>::infinity());
  rejects(infinite, {"'alpha' is inf"});
}

TEST_CASE("onnx clip: bounds as attributes") {
  OnnxModel model = OnnxModel::of_image({2, 3, 3}, 10);
  model.add_node("Clip", {"x"}).set("min", 0.0F).set("max", 6.0F);
  const auto clip = last<Elementwise>(model.import());
  CHECK(clip.function == ElementFunction::clip);
  CHECK(clip.alpha == 0);
  CHECK(clip.beta == 6);
}

TEST_CASE("onnx clip: bounds as inputs, each may be left out") {
  OnnxModel model = OnnxModel::of_image({2, 3, 3});
  model.floats("low", {}, {-1});
  model.floats("high", {}, {1});
  SECTION("both") {
    model.add_node("Clip", {"x", "low", "high"});
    CHECK(last<Elementwise>(model.import()).alpha == -1);
    CHECK(last<Elementwise>(model.import()).beta == 1);
  }
  SECTION("upper") {
    model.add_node("Clip", {"x", "", "high"});
    CHECK(last<Elementwise>(model.import()).alpha == std::numeric_limits<float>::lowest());
  }
  SECTION("lower, 0") {
    model.floats("zero", {}, {0});
    model.add_node("Clip", {"x", "zero"});
    CHECK(function(model.import()) == ElementFunction::relu);
  }
  SECTION("the wrong way round") {
    model.add_node("Clip", {"x", "high", "low"});
    CHECK(last<Elementwise>(model.import()).alpha == -1);  // the upper bound counts
  }
  SECTION("NaN") {
    model.floats("nan", {}, {std::numeric_limits<float>::quiet_NaN()});
    model.add_node("Clip", {"x", "nan"});
    rejects(model, {"min is NaN"});
  }
  SECTION("several numbers") {
    model.floats("list", {2});
    model.add_node("Clip", {"x", "list"});
    rejects(model, {"min 'list' has the shape [2], it must be one number"});
  }
}

TEST_CASE("onnx batch normalization: computed in double") {
  OnnxModel model = batch_norm_model();
  model.add_node("BatchNormalization", {"x", "gamma", "beta", "mean", "variance"}).set("epsilon", 1.0F);
  const auto affine = last<ChannelAffine>(model.import());
  CHECK(affine.scale == std::vector<float>{1, 1});
  CHECK(affine.shift == std::vector<float>{-2, 1});
}

TEST_CASE("onnx batch normalization: the default epsilon") {
  OnnxModel model = batch_norm_model();
  model.add_node("BatchNormalization", {"x", "gamma", "beta", "mean", "variance"}).set("momentum", 0.1F);
  CHECK(last<ChannelAffine>(model.import()).scale[0] == Approx(2 / std::sqrt(3 + 1e-5)));
}

TEST_CASE("onnx batch normalization: what is refused") {
  OnnxModel model = batch_norm_model();
  const auto node = [&](const std::string& variance) {
    return model.add_node("BatchNormalization", {"x", "gamma", "beta", "mean", variance});
  };
  SECTION("training") {
    node("variance").set("training_mode", 1);
    refuses(model, {"training_mode", "model.eval()"});
  }
  SECTION("its outputs of training") {
    node("variance").node.add_output("running_mean");
    model.output("running_mean");
    refuses(model, {"its output 2, 'running_mean', is used"});
  }
  SECTION("negative variance") {
    model.floats("v", {2}, {1, -1});
    node("v");
    rejects(model, {"variance of channel 1 is -1"});
  }
  SECTION("beyond float32") {
    model.floats("v", {2}, {1, 0});
    NodeMaker made = node("v");
    made.set("epsilon", 1e-45F);
    model.proto.mutable_graph()->mutable_initializer(0)->set_float_data(1, 3e38F);
    rejects(model, {"channel 1", "beyond what float32 can hold"});
  }
  SECTION("another number of channels") {
    model.floats("v", {3});
    node("v");
    rejects(model, {"variance 'v' has the shape [3]", "2 channels"});
  }
  SECTION("a missing input") {
    model.add_node("BatchNormalization", {"x", "gamma", "beta", "mean"});
    rejects(model, {"lacks input 5"});
  }
  SECTION("not spatial") {
    model.proto.mutable_opset_import(0)->set_version(8);
    node("variance").set("spatial", 0);
    refuses(model, {"'spatial' is 0"});
  }
}

TEST_CASE("onnx pool: max") {
  OnnxModel model = OnnxModel::of_image({2, 7, 8});
  NodeMaker node = model.add_node("MaxPool", {"x"});
  node.set("kernel_shape", Dims{3, 2}).set("strides", Dims{2, 1}).set("pads", Dims{1, 0, 0, 1});
  node.set("storage_order", 0);
  const Network network = model.import();
  const auto pool = last<Pool>(network);
  CHECK(pool.kind == PoolKind::max);
  CHECK(pool.kernel_h == 3);
  CHECK(pool.kernel_w == 2);
  CHECK(pool.stride_h == 2);
  CHECK(pool.pad == Padding{1, 0, 0, 1});
  CHECK_FALSE(pool.round_up);
  CHECK(last_shape(network) == Dims{2, 3, 8});
}

TEST_CASE("onnx pool: average rounded up, padding counted") {
  OnnxModel model = OnnxModel::of_image({2, 6, 6}, 19);
  NodeMaker node = model.add_node("AveragePool", {"x"});
  node.set("kernel_shape", Dims{3, 3}).set("strides", Dims{2, 2}).set("ceil_mode", 1).set("count_include_pad", 1);
  const Network network = model.import();
  CHECK(last<Pool>(network).kind == PoolKind::average);
  CHECK(last<Pool>(network).round_up);
  CHECK(last<Pool>(network).count_padding);
  CHECK(last_shape(network) == Dims{2, 3, 3});
}

TEST_CASE("onnx pool: what is refused") {
  OnnxModel model = OnnxModel::of_image({2, 6, 6});
  NodeMaker node = model.add_node("MaxPool", {"x"});
  SECTION("no kernel") { rejects(model, {"lacks the attribute 'kernel_shape'"}); }
  SECTION("1-D") {
    node.set("kernel_shape", Dims{3});
    rejects(model, {"'kernel_shape' has 1 values"});
  }
  SECTION("huge") {
    node.set("kernel_shape", Dims{1, std::int64_t{1} << 62});
    refuses(model, {"'kernel_shape' is 4611686018427387904"});
  }
  SECTION("indices") {
    node.set("kernel_shape", Dims{2, 2});
    node.node.add_output("indices");
    model.output("indices");
    refuses(model, {"'indices', is used"});
  }
}

TEST_CASE("onnx pool: global") {
  CHECK(kinds(through("GlobalAveragePool", {4, 3, 5})) == "global_average_pool");
  const Network network = through("GlobalMaxPool", {4, 3, 5});
  CHECK(last<Pool>(network).kernel_h == 3);
  CHECK(last<Pool>(network).kernel_w == 5);
  CHECK(last_shape(network) == Dims{4, 1, 1});
}

TEST_CASE("onnx pool: the largest of an image that no pool's window holds") {
  const Network network = through("GlobalMaxPool", {2, 40, 3000});
  CHECK(kinds(network) == "reduce");
  CHECK(last_shape(network) == Dims{2, 1, 1});
}

TEST_CASE("onnx reduce mean: over rows and columns") {
  OnnxModel kept = OnnxModel::of_image({4, 3, 5});
  kept.add_node("ReduceMean", {"x"}).set("axes", Dims{2, 3});
  CHECK(kinds(kept.import()) == "global_average_pool");
  OnnxModel dropped = OnnxModel::of_image({4, 3, 5}, 18);
  dropped.integers("axes", {-1, -2});
  dropped.add_node("ReduceMean", {"x", "axes"}).set("keepdims", 0);
  CHECK(kinds(dropped.import()) == "global_average_pool reshape");
  CHECK(last_shape(dropped.import()) == Dims{4});
}

TEST_CASE("onnx pad: attributes and inputs") {
  OnnxModel old = OnnxModel::of_image({2, 3, 3}, 10);
  old.add_node("Pad", {"x"}).set("pads", Dims{0, 0, 1, 2, 0, 0, 3, 4}).set("value", 0.5F);
  CHECK(last<Pad>(old.import()).pad == Padding{1, 3, 2, 4});
  CHECK(last<Pad>(old.import()).value == 0.5F);
  OnnxModel axes = OnnxModel::of_image({2, 3, 3}, 18);
  axes.integers("pads", {1, 2});
  axes.integers("axes", {-1});
  axes.add_node("Pad", {"x", "pads", "", "axes"}).set("mode", "constant");
  CHECK(last<Pad>(axes.import()).pad == Padding{0, 0, 1, 2});
}

TEST_CASE("onnx pad: what is refused") {
  const auto model = [](const Dims& pads, const char* mode = "constant") {
    OnnxModel made = OnnxModel::of_image({2, 3, 3});
    made.integers("pads", pads);
    made.add_node("Pad", {"x", "pads"}).set("mode", mode);
    return made;
  };
  refuses(model({0, 1, 0, 0, 0, 0, 0, 0}, "edge"), {"pads the channels of 2x3x3 in the mode edge"});
  refuses(model({1, 0, 0, 0, 0, 0, 0, 0}), {"pads the batch"});
  refuses(model({0, 0, -1, 0, 0, 0, -2, 0}), {"padding of -1 and -2 leaves nothing of an axis of 3"});
  refuses(model({0, 0, 1, 1, 0, 0, 1, 1}, "mirror"), {"'mode' is 'mirror'; burin knows constant, reflect, edge, wrap"});
  refuses(model({0, 0, std::int64_t{1} << 40, 0, 0, 0, 0, 0}), {"padding is 1099511627776"});
  rejects(model({1, 1}), {"2 values for 4 axes"});
}

TEST_CASE("onnx lrn") {
  OnnxModel model = OnnxModel::of_image({8, 3, 3});
  model.add_node("LRN", {"x"}).set("size", 5).set("alpha", 0.5F).set("beta", 0.25F).set("bias", 2.0F);
  const auto lrn = last<Lrn>(model.import());
  CHECK(lrn.size == 5);
  CHECK(lrn.alpha == 0.5F);
  CHECK(lrn.beta == 0.25F);
  CHECK(lrn.bias == 2);
  OnnxModel without = OnnxModel::of_image({8, 3, 3});
  without.add_node("LRN", {"x"});
  rejects(without, {"lacks the attribute 'size'"});
}

TEST_CASE("onnx softmax: the forms that are over the channels") {
  const auto model = [](const Dims& extents, int opset, std::int64_t axis) {
    OnnxModel made = OnnxModel::of_image(extents, opset);
    made.add_node("Softmax", {"x"}).set("axis", axis);
    return made;
  };
  CHECK(kinds(through("Softmax", {10}, 13)) == "softmax");
  CHECK(kinds(through("Softmax", {10}, 11)) == "softmax");
  CHECK(kinds(model({10, 3, 3}, 13, 1).import()) == "softmax");
  CHECK(kinds(model({10, 3, 3}, 13, -3).import()) == "softmax");
  CHECK(kinds(model({10, 1, 1}, 11, 1).import()) == "softmax");
}

TEST_CASE("onnx dropout and identity change nothing") {
  CHECK(kinds(through("Identity", {2, 3, 3})) == "identity");
  CHECK(kinds(through("Dropout", {2, 3, 3})) == "identity");
  OnnxModel model = OnnxModel::of_image({2, 3, 3});
  model.floats("ratio", {}, {0.5F});
  auto& mode = *model.proto.mutable_graph()->add_initializer();
  mode.set_name("mode");
  mode.set_data_type(onnx::TensorProto::BOOL);
  mode.add_int32_data(1);
  model.add_node("Dropout", {"x", "ratio", "mode"});
  refuses(model, {"training mode is on"});
}

TEST_CASE("onnx cast: between floating-point types") {
  OnnxModel model = OnnxModel::of_image({2, 3, 3});
  model.add_node("Cast", {"x"}).set("to", 10);
  CHECK(kinds(model.import()) == "identity");
  OnnxModel integer = OnnxModel::of_image({2, 3, 3});
  integer.add_node("Cast", {"x"}).set("to", 7);
  refuses(integer, {"casts an activation to int64"});
  OnnxModel eight_bits = OnnxModel::of_image({2, 3, 3});
  eight_bits.add_node("Cast", {"x"}).set("to", 17);
  refuses(eight_bits, {"casts to ONNX's type 17"});
}
