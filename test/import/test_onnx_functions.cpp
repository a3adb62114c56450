// Functions, lists of operands, reductions and normalizations of ONNX models: what is read, and what is refused.
#include <cmath>
#include <limits>

#include "compiler/network/reference_network.h"
#include "test/import/files.h"
#include "test/import/onnx_faults.h"
#include "test/import/onnx_model.h"

using namespace burin;
using namespace burin_test;

namespace {

using Dims = std::vector<std::int64_t>;

OnnxModel through_node(const std::string& op, const Dims& extents = {4, 3, 5}, int opset = 21) {
  OnnxModel model = OnnxModel::of_image(extents, opset);
  model.add_node(op, {"x"});
  return model;
}

}  // namespace

TEST_CASE("onnx functions: those without attributes") {
  const std::pair<const char*, ElementFunction> all[] = {
      {"Abs", ElementFunction::absolute}, {"Ceil", ElementFunction::ceil},
      {"Cos", ElementFunction::cosine},   {"Erf", ElementFunction::erf},
      {"Exp", ElementFunction::exp},      {"Floor", ElementFunction::floor},
      {"Log", ElementFunction::log},      {"Mish", ElementFunction::mish},
      {"Round", ElementFunction::round},  {"Sign", ElementFunction::sign},
      {"Sin", ElementFunction::sine},     {"Softplus", ElementFunction::softplus},
      {"Sqrt", ElementFunction::sqrt},    {"Softsign", ElementFunction::softsign},
      {"Tanh", ElementFunction::tanh},    {"Reciprocal", ElementFunction::reciprocal},
      {"Acos", ElementFunction::acos},    {"Acosh", ElementFunction::acosh},
      {"Asin", ElementFunction::asin},    {"Asinh", ElementFunction::asinh},
      {"Atan", ElementFunction::atan},    {"Atanh", ElementFunction::atanh},
      {"Cosh", ElementFunction::cosh},    {"Sinh", ElementFunction::sinh},
      {"Tan", ElementFunction::tangent},
  };
  for (const auto& [op, function] : all) {
    INFO(op);
    CHECK(last<Elementwise>(through_node(op).import()).function == function);
  }
  CHECK(last<ChannelAffine>(through_node("Neg").import()).scale == std::vector<float>(4, -1));
}

TEST_CASE("onnx functions: attributes and their defaults") {
  const auto elu = last<Elementwise>(through_node("Elu").import());
  CHECK(elu.function == ElementFunction::elu);
  CHECK(elu.alpha == 1);
  CHECK(elu.beta == 1);
  const auto selu = last<Elementwise>(through_node("Selu").import());
  CHECK(selu.function == ElementFunction::elu);
  CHECK(selu.alpha == Approx(1.67326319 * 1.05070102));
  CHECK(selu.beta == Approx(1.05070102));
  CHECK(last<Elementwise>(through_node("Celu").import()).alpha == 1);
  CHECK(last<Elementwise>(through_node("ThresholdedRelu").import()).alpha == 1);
  CHECK(last<Elementwise>(through_node("Gelu").import()).function == ElementFunction::gelu);
  const auto gelu = [](const char* by) {
    OnnxModel model = OnnxModel::of_image({4, 3, 5}, 20);
    model.add_node("Gelu", {"x"}).set("approximate", by);
    return model;
  };
  CHECK(last<Elementwise>(gelu("tanh").import()).function == ElementFunction::gelu_tanh);
  rejects(gelu("sigmoid"), {"'approximate' is 'sigmoid'", "'none' or 'tanh'"});
  const auto shrink = last<Elementwise>(through_node("Shrink").import());
  CHECK(shrink == Elementwise{ElementFunction::shrink, 0.5F, 0});
  OnnxModel soft = OnnxModel::of_image({4, 3, 5});
  soft.add_node("Shrink", {"x"}).set("lambd", 0.25F).set("bias", 0.125F);
  CHECK(last<Elementwise>(soft.import()) == Elementwise{ElementFunction::shrink, 0.25F, 0.125F});
  OnnxModel flat = OnnxModel::of_image({4, 3, 5});
  flat.add_node("Celu", {"x"}).set("alpha", 0.0F);
  rejects(flat, {"'alpha' is 0"});
}

TEST_CASE("onnx hardmax: over one axis, in old opsets over all that follow") {
  const auto of = [](int axis, int opset) {
    OnnxModel model = OnnxModel::of_image({4, 3, 5}, opset);
    model.add_node("Hardmax", {"x"}).set("axis", axis);
    return model;
  };
  const Network columns = of(-1, 13).import();
  CHECK(kinds(columns) == "reduce combine combine reduce combine");
  CHECK(std::get<Reduce>(columns.operators[0].kind).axes == std::vector{2});
  CHECK(std::get<Combine>(columns.operators[2].kind).constant->shape == Dims{1, 1, 5});
  CHECK(std::get<Combine>(columns.operators[2].kind).constant->values == std::vector<float>{5, 4, 3, 2, 1});
  CHECK(std::get<Reduce>(of(2, 11).import().operators[0].kind).axes == std::vector{1, 2});
  refuses(of(0, 13), {"over the batch"});
}

TEST_CASE("onnx hardmax: of several largest the first") {
  OnnxModel model(13);
  model.input("x", {kSymbolic, 2, 4});
  model.output("y");
  model.add_node("Hardmax", {"x"}).set("axis", -1);
  const std::vector<float> image = {1, 3, 3, 2, -1, -1, -2, -1};
  CHECK(run_reference(model.import(), 1, {image})[0] == std::vector<double>{0, 1, 0, 0, 1, 0, 0, 0});
}

TEST_CASE("onnx mod: the remainder of real numbers") {
  const auto of = [](const std::vector<std::string>& inputs, int fmod) {
    OnnxModel model = OnnxModel::of_image({4, 3, 5});
    model.input("z", {kSymbolic, 4, 3, 5});
    model.floats("c", {}, {0.75F});
    model.add_node("Mod", inputs).set("fmod", fmod);
    return model;
  };
  CHECK(last<Combine>(of({"x", "z"}, 1).import()).combination == Combination::remainder);
  const auto by_number = last<Combine>(of({"x", "c"}, 1).import());
  CHECK(by_number.constant->values == std::vector<float>{0.75F});
  CHECK_FALSE(by_number.swapped);
  CHECK(last<Combine>(of({"c", "x"}, 1).import()).swapped);
  rejects(of({"x", "z"}, 0), {"'fmod' must be 1"});
}

TEST_CASE("onnx pow: by one number, by many, and of numbers") {
  const auto raised = [](const Dims& dims, const std::vector<float>& values, bool swapped = false) {
    OnnxModel model = OnnxModel::of_image({4, 3, 5});
    model.floats("c", dims, values);
    model.add_node("Pow", swapped ? std::vector<std::string>{"c", "x"} : std::vector<std::string>{"x", "c"});
    return model.import();
  };
  CHECK(last<Elementwise>(raised({}, {3})).function == ElementFunction::power);
  CHECK(last<Elementwise>(raised({1}, {3})).alpha == 3);
  CHECK(last<Elementwise>(raised({}, {0.5F})).function == ElementFunction::sqrt);
  CHECK(last<Elementwise>(raised({}, {-1})).function == ElementFunction::reciprocal);
  const auto by_column = last<Combine>(raised({5}, {1, 2, 3, 4, 5}));
  CHECK(by_column.combination == Combination::power);
  CHECK(by_column.constant->shape == Dims{1, 1, 5});
  CHECK_FALSE(by_column.swapped);
  CHECK(last<Combine>(raised({}, {2}, true)).swapped);
}

TEST_CASE("onnx prelu: one slope, one for each channel, an activation") {
  OnnxModel one = OnnxModel::of_image({2, 3, 3});
  one.floats("slope", {1}, {0.25F});
  one.add_node("PRelu", {"x", "slope"});
  CHECK(last<Elementwise>(one.import()).alpha == 0.25F);
  OnnxModel each = OnnxModel::of_image({2, 3, 3});
  each.floats("slope", {2, 1, 1});
  each.add_node("PRelu", {"x", "slope"});
  CHECK(last<Combine>(each.import()).constant->values == std::vector<float>{1, 2});
  OnnxModel flows = OnnxModel::of_image({2, 3, 3});
  flows.add_node("GlobalAveragePool", {"x"}, "slope");
  flows.add_node("PRelu", {"x", "slope"});
  CHECK(last<Combine>(flows.import()).combination == Combination::prelu);
}

TEST_CASE("onnx lists of operands: activations and constants in any order") {
  OnnxModel model = OnnxModel::of_image({2, 3, 3});
  model.floats("c", {1, 3}, {4, 5, 6});
  model.add_node("Sigmoid", {"x"}, "s");
  SECTION("a constant first") {
    model.add_node("Max", {"c", "x", "s"});
    const Network network = model.import();
    CHECK(kinds(network) == "elementwise combine combine");
    CHECK(std::get<Combine>(network.operators[1].kind).constant->shape == Dims{1, 1, 3});
    CHECK(last<Combine>(network).combination == Combination::larger);
  }
  SECTION("one") {
    model.add_node("Min", {"x"});
    CHECK(kinds(model.import()) == "identity");
  }
  SECTION("the mean") {
    model.add_node("Mean", {"x", "s", "x", "s"});
    CHECK(last<ChannelAffine>(model.import()).scale == std::vector<float>{0.25F, 0.25F});
  }
  SECTION("a smaller one first") {
    model.add_node("GlobalAveragePool", {"x"}, "mean");
    model.add_node("Min", {"mean", "x"});
    const Network network = model.import();
    CHECK(last<Combine>(network).swapped);
    CHECK(last_shape(network) == Dims{2, 3, 3});
  }
}

TEST_CASE("onnx lists: the larger or smaller of one tensor and one number cuts it off") {
  const auto cut = [](const std::string& op, float number) {
    OnnxModel model = OnnxModel::of_image({2, 3, 3});
    model.floats("c", {1}, {number});
    model.add_node(op, {"c", "x"});
    return last<Elementwise>(model.import());
  };
  constexpr float kEnd = std::numeric_limits<float>::infinity();
  CHECK(cut("Min", 6) == Elementwise{ElementFunction::clip, -kEnd, 6});
  CHECK(cut("Max", -1) == Elementwise{ElementFunction::clip, -1, kEnd});
  CHECK(cut("Max", 0) == Elementwise{ElementFunction::relu});
}

TEST_CASE("onnx operands: what cannot meet is refused") {
  OnnxModel flat = OnnxModel::of_image({2, 3, 3});
  flat.add_node("Flatten", {"x"}, "f");
  flat.add_node("Add", {"x", "f"});
  refuses(flat, {"2x3x3 and 18", "Unsqueeze"});
  OnnxModel larger = OnnxModel::of_image({1, 3, 3});
  larger.floats("c", {4, 1, 1});
  larger.floats("other", {2, 4, 1, 1});
  larger.add_node("Sub", {"x", "c"}, "less");
  const auto by_image = [&] {
    OnnxModel model = larger;
    model.add_node("Sub", {"x", "other"});
    return model;
  };
  refuses(by_image(), {"'other' has the shape [2,4,1,1]", "1x3x3", "along each axis"});
  // What is smaller than the constant becomes as large.
  larger.add_node("Relu", {"less"});
  CHECK(kinds(larger.import()) == "pick channel_affine elementwise");
  CHECK(last_shape(larger.import()) == Dims{4, 3, 3});
}

TEST_CASE("onnx reductions: statistic, function, axes") {
  const auto reduced = [](const std::string& op, const Dims& axes, bool keeps = true, int opset = 11) {
    OnnxModel model = OnnxModel::of_image({4, 3, 5}, opset);
    model.add_node(op, {"x"}).set("axes", axes).set("keepdims", keeps ? 1 : 0);
    return model.import();
  };
  const std::pair<const char*, Statistic> all[] = {
      {"ReduceMean", Statistic::mean},         {"ReduceSum", Statistic::sum},
      {"ReduceMax", Statistic::largest},       {"ReduceMin", Statistic::smallest},
      {"ReduceProd", Statistic::product},      {"ReduceL1", Statistic::sum_of_magnitudes},
      {"ReduceL2", Statistic::sum_of_squares}, {"ReduceSumSquare", Statistic::sum_of_squares},
      {"ReduceLogSum", Statistic::sum},        {"ReduceLogSumExp", Statistic::log_sum_exp},
  };
  for (const auto& [op, statistic] : all) {
    const Network network = reduced(op, {1});
    CHECK(last<Reduce>(network).statistic == statistic);
    CHECK(last<Reduce>(network).axes == std::vector<int>{0});
    CHECK(last_shape(network) == Dims{1, 3, 5});
  }
  CHECK(last<Reduce>(reduced("ReduceL2", {1})).then->function == ElementFunction::sqrt);
  CHECK(last<Reduce>(reduced("ReduceLogSum", {1})).then->function == ElementFunction::log);
  CHECK_FALSE(last<Reduce>(reduced("ReduceSumSquare", {1})).then);
  CHECK(last<Reduce>(reduced("ReduceMax", {-1, 1})).axes == std::vector<int>{0, 2});
  const Network dropped = reduced("ReduceSum", {3, 1}, false);
  CHECK(kinds(dropped) == "reduce reshape");
  CHECK(last_shape(dropped) == Dims{3});
}

TEST_CASE("onnx reductions: axes as an input since opset 13 or 18") {
  for (const auto& [op, opset] : {std::pair("ReduceSum", 13), std::pair("ReduceMax", 18)}) {
    OnnxModel model = OnnxModel::of_image({4, 3, 5}, opset);
    model.integers("axes", {2});
    model.add_node(op, {"x", "axes"});
    CHECK(last<Reduce>(model.import()).axes == std::vector<int>{1});
    OnnxModel nothing = OnnxModel::of_image({4, 3, 5}, opset);
    nothing.add_node(op, {"x"}).set("noop_with_empty_axes", 1);
    CHECK(kinds(nothing.import()) == "identity");
  }
}

TEST_CASE("onnx reductions: what is refused") {
  const auto over = [](const Dims& axes, bool keeps = true) {
    OnnxModel model = OnnxModel::of_image({4, 3, 5});
    model.add_node("ReduceMax", {"x"}).set("axes", axes).set("keepdims", keeps ? 1 : 0);
    return model;
  };
  refuses(over({0, 1}), {"over the batch (axis 0)"});
  refuses(over({1, 2, 3}, false), {"leaves no axis", "keepdims"});
  rejects(over({4}), {"axis 4"});
  rejects(over({1, -3}), {"names an axis twice"});
  refuses(through_node("ReduceMax"), {"over the batch (axis 0)"});  // all axes
}

TEST_CASE("onnx axes: a batch that the file fixes to one image says nothing") {
  const auto of_one = [](bool keeps, int batch) {
    OnnxModel model = OnnxModel::of_image({4, 3, 5});
    model.proto.mutable_graph()
        ->mutable_input(0)
        ->mutable_type()
        ->mutable_tensor_type()
        ->mutable_shape()
        ->mutable_dim(0)
        ->set_dim_value(batch);
    model.add_node("ReduceMax", {"x"}).set("keepdims", keeps ? 1 : 0);
    return model;
  };
  CHECK(last<Reduce>(of_one(true, 1).import()).axes == std::vector<int>{0, 1, 2});
  refuses(of_one(false, 1), {"takes the batch away", "keepdims"});
  refuses(of_one(true, 2), {"over the batch (axis 0)"});
}

TEST_CASE("onnx pools of lengths, and maxima of images that no window holds") {
  CHECK(last<Reduce>(through_node("GlobalLpPool").import()).then->function == ElementFunction::sqrt);
  OnnxModel one = OnnxModel::of_image({2, 6, 6});
  one.add_node("GlobalLpPool", {"x"}).set("p", 1);
  CHECK(last<Reduce>(one.import()).statistic == Statistic::sum_of_magnitudes);
  const auto pool = [](std::int64_t p) {
    OnnxModel model = OnnxModel::of_image({2, 6, 6});
    model.add_node("LpPool", {"x"}).set("p", p).set("kernel_shape", Dims{2, 3});
    return model;
  };
  const Network squares = pool(2).import();
  CHECK(kinds(squares) == "elementwise pool channel_affine");
  CHECK(last<ChannelAffine>(squares).scale == std::vector<float>{6, 6});
  CHECK(last<ChannelAffine>(squares).then->function == ElementFunction::sqrt);
  CHECK_FALSE(last<ChannelAffine>(pool(1).import()).then);
  const Network cubes = pool(3).import();
  CHECK(kinds(cubes) == "elementwise elementwise pool channel_affine");
  CHECK(*last<ChannelAffine>(cubes).then == Elementwise{ElementFunction::power, 1.0F / 3, 0});
  CHECK(kinds(pool(4).import()) == "elementwise pool channel_affine");
  refuses(pool(65), {"'p' is 65", "1 to 64"});
  OnnxModel three = OnnxModel::of_image({2, 6, 6});
  three.add_node("GlobalLpPool", {"x"}).set("p", 3);
  CHECK(kinds(three.import()) == "elementwise elementwise reduce");
  CHECK(last<Reduce>(three.import()).statistic == Statistic::sum);
  CHECK(kinds(through_node("GlobalMaxPool", {1, 2000, 3}).import()) == "reduce");
}

TEST_CASE("onnx layer normalization: axes, scale and shift") {
  const auto model = [](std::int64_t axis, const Dims& dims, bool shift, const std::string& op = "LayerNormalization") {
    OnnxModel made = OnnxModel::of_image({4, 3, 2}, 17);
    made.floats("scale", dims);
    made.floats("shift", {2});
    made.add_node(op, shift ? std::vector<std::string>{"x", "scale", "shift"} : std::vector<std::string>{"x", "scale"})
        .set("axis", axis)
        .set("epsilon", 0.5F);
    return made;
  };
  const auto last_axis = last<Normalize>(model(-1, {2}, true).import());
  CHECK(last_axis.normalization == Normalization::deviation);
  CHECK(last_axis.axes == std::vector<int>{2});
  CHECK(last_axis.epsilon == 0.5F);
  CHECK(last_axis.scale->shape == Dims{1, 1, 2});
  CHECK(last_axis.shift->values == std::vector<float>{1, 2});
  const auto two = last<Normalize>(model(2, {3, 2}, true).import());
  CHECK(two.axes == std::vector<int>{1, 2});
  CHECK(two.shift->shape == Dims{1, 3, 2});  // repeated to the scale's
  CHECK(two.shift->values == std::vector<float>{1, 2, 1, 2, 1, 2});
  CHECK_FALSE(last<Normalize>(model(1, {2}, false).import()).shift);
  CHECK(last<Normalize>(model(-1, {2}, false, "RMSNormalization").import()).normalization ==
        Normalization::root_mean_square);
  refuses(model(0, {2}, false), {"over the batch"});
  refuses(model(-1, {3}, false), {"[3]", "4x3x2"});
}

TEST_CASE("onnx instance and group normalization") {
  OnnxModel instance = OnnxModel::of_image({4, 3, 5});
  instance.floats("scale", {4});
  instance.floats("bias", {4});
  instance.add_node("InstanceNormalization", {"x", "scale", "bias"});
  const auto normal = last<Normalize>(instance.import());
  CHECK(normal.axes == std::vector<int>{1, 2});
  CHECK(normal.scale->shape == Dims{4, 1, 1});
  const auto group = [](std::int64_t groups, int opset, std::int64_t numbers) {
    OnnxModel model = OnnxModel::of_image({4, 3, 5}, opset);
    model.floats("scale", {numbers});
    model.floats("bias", {numbers});
    model.add_node("GroupNormalization", {"x", "scale", "bias"}).set("num_groups", groups);
    return model;
  };
  const Network by_channel = group(2, 21, 4).import();
  CHECK(kinds(by_channel) == "reshape normalize reshape");
  const auto& grouped = std::get<Normalize>(by_channel.operators[1].kind);
  CHECK(grouped.axes == std::vector<int>{1, 2, 3});
  CHECK(grouped.scale->shape == Dims{2, 2, 1, 1});
  CHECK(last_shape(by_channel) == Dims{4, 3, 5});
  const Network by_group = group(2, 18, 2).import();
  CHECK(std::get<Normalize>(by_group.operators[1].kind).scale->shape == Dims{2, 1, 1, 1});
  rejects(group(3, 21, 4), {"4 channels cannot be divided into 3 groups"});
  rejects(group(2, 18, 4), {"[4]", "2 values"});
}

TEST_CASE("onnx normalizations without numbers: lengths, deviations, softmax and its logarithm") {
  CHECK(last<Normalize>(through_node("LpNormalization").import()).normalization == Normalization::length);
  OnnxModel deviation = OnnxModel::of_image({4, 3, 5});
  deviation.add_node("MeanVarianceNormalization", {"x"}).set("axes", Dims{2, 3});
  CHECK(last<Normalize>(deviation.import()).axes == std::vector<int>{1, 2});
  refuses(through_node("MeanVarianceNormalization"), {"over the batch"});
  const auto softmax = [](const std::string& op, int opset, std::int64_t axis) {
    OnnxModel model = OnnxModel::of_image({4, 3, 5}, opset);
    model.add_node(op, {"x"}).set("axis", axis);
    return model;
  };
  CHECK(kinds(softmax("Softmax", 13, 1).import()) == "softmax");
  CHECK(last<Normalize>(softmax("Softmax", 13, -1).import()).axes == std::vector<int>{2});
  CHECK(last<Normalize>(softmax("Softmax", 11, 2).import()).axes == std::vector<int>{1, 2});
  CHECK(last<Normalize>(softmax("Softmax", 11, 1).import()).axes == std::vector<int>{0, 1, 2});
  CHECK(last<Normalize>(softmax("LogSoftmax", 13, 1).import()).normalization == Normalization::log_softmax);
  refuses(softmax("Softmax", 13, 0), {"over the batch"});
  rejects(softmax("Softmax", 13, 4), {"axis 4"});
}

TEST_CASE("onnx matmul: the last of three axes is multiplied as a 1x1 convolution") {
  OnnxModel model = OnnxModel::of_image({5, 4, 3});  // rows, columns, features
  model.floats("w", {3, 2}, {1, 2, 3, 4, 5, 6});
  model.add_node("MatMul", {"x", "w"});
  const Network network = model.import();
  CHECK(kinds(network) == "transpose convolution transpose");
  CHECK(last_shape(network) == Dims{5, 4, 2});
  CHECK(network.layers.at(0).weights == std::vector<float>{1, 3, 5, 2, 4, 6});
  CHECK(network.layers[0].shape.in_h == 5);
  OnnxModel wrong = OnnxModel::of_image({5, 4, 2});
  wrong.floats("w", {3, 2}, {1, 2, 3, 4, 5, 6});
  wrong.add_node("MatMul", {"x", "w"});
  rejects(wrong, {"has 2 features", "takes 3"});
}
