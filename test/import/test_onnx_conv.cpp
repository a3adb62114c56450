// Convolutions and fully connected layers of ONNX models.
#include <limits>

#include "test/import/files.h"
#include "test/import/onnx_model.h"

using namespace burin;
using namespace burin_test;

namespace {

using Dims = std::vector<std::int64_t>;

// x[2,5,6] through a 3x3 convolution to 4 channels.
OnnxModel conv_model() {
  OnnxModel model = OnnxModel::of_image({2, 5, 6});
  model.floats("w", {4, 2, 3, 3});
  return model;
}

ConvShape conv_shape(const OnnxModel& model) { return model.import().layers.at(0).shape; }

OnnxModel gemm_model(const Dims& matrix, const Dims& bias = {}) {
  OnnxModel model = OnnxModel::of_image({3});
  model.floats("m", matrix);
  if (!bias.empty()) model.floats("c", bias);
  return model;
}

const Linear& linear(const Network& network) { return std::get<Linear>(network.operators.at(0).kind); }

void rejects_conv(const OnnxModel& model, std::initializer_list<std::string_view> parts) {
  expect_bad_input({"net.onnx: ", "node "}, [&] { model.import(); });
  expect_bad_input(parts, [&] { model.import(); });
}

void refuses_conv(const OnnxModel& model, std::initializer_list<std::string_view> parts) {
  expect_error(ErrorKind::unsupported, {"net.onnx: ", "node "}, [&] { model.import(); });
  expect_error(ErrorKind::unsupported, parts, [&] { model.import(); });
}

}  // namespace

TEST_CASE("onnx conv: defaults") {
  OnnxModel model = conv_model();
  model.add_node("Conv", {"x", "w"});
  const Network network = model.import();
  REQUIRE(network.layers.size() == 1);
  const ConvLayer& layer = network.layers[0];
  CHECK(layer.name == "y");
  CHECK(describe(layer.shape) == "2x5x6 -> 4x3x4, 3x3, stride 1, pad 0");
  CHECK(layer.weights.size() == 72);
  CHECK(layer.weight(3, 1, 2, 2) == 72);
  CHECK_FALSE(layer.shape.epilogue.bias);
  CHECK(last_shape(network) == Dims{4, 3, 4});
  CHECK(network.tensors[static_cast<std::size_t>(network.outputs.at(0))].name == "y");
}

TEST_CASE("onnx conv: bias, stride, dilation and unequal padding") {
  OnnxModel model = conv_model();
  model.floats("b", {4});
  NodeMaker node = model.add_node("Conv", {"x", "w", "b"});
  node.set("strides", Dims{2, 1}).set("dilations", Dims{1, 2}).set("pads", Dims{1, 2, 3, 4});
  node.set("kernel_shape", Dims{3, 3});
  node.node.set_name("first");
  const ConvLayer layer = model.import().layers.at(0);
  CHECK(layer.name == "first");
  CHECK(layer.bias == std::vector<float>{1, 2, 3, 4});
  CHECK(layer.shape.stride_h == 2);
  CHECK(layer.shape.stride_w == 1);
  CHECK(layer.shape.dilation_h == 1);
  CHECK(layer.shape.dilation_w == 2);
  CHECK(layer.shape.pad == Padding{1, 3, 2, 4});
}

TEST_CASE("onnx conv: groups") {
  OnnxModel model = OnnxModel::of_image({4, 5, 5});
  model.floats("w", {6, 2, 1, 1});
  model.add_node("Conv", {"x", "w"}).set("group", 2);
  CHECK(conv_shape(model).groups == 2);
  CHECK(conv_shape(model).in_channels == 4);
}

TEST_CASE("onnx conv: auto_pad puts the odd pixel where it says") {
  const auto padding = [](const char* mode) {
    OnnxModel model = OnnxModel::of_image({2, 5, 6});
    model.floats("w", {4, 2, 3, 2});
    model.add_node("Conv", {"x", "w"}).set("strides", Dims{2, 2}).set("auto_pad", mode);
    return conv_shape(model);
  };
  CHECK(padding("SAME_UPPER").pad == Padding{1, 1, 0, 0});
  CHECK(padding("SAME_UPPER").out_w() == 3);
  CHECK(padding("VALID").pad == Padding{});
  CHECK(padding("NOTSET").pad == Padding{});
  const auto odd = [](const char* mode) {
    OnnxModel model = OnnxModel::of_image({2, 5, 6});
    model.floats("w", {4, 2, 2, 2});
    model.add_node("Conv", {"x", "w"}).set("auto_pad", mode);
    return conv_shape(model).pad;
  };
  CHECK(odd("SAME_UPPER") == Padding{0, 1, 0, 1});
  CHECK(odd("SAME_LOWER") == Padding{1, 0, 1, 0});
}

TEST_CASE("onnx conv: auto_pad counts the dilation") {
  OnnxModel model = conv_model();
  model.add_node("Conv", {"x", "w"}).set("dilations", Dims{2, 2}).set("auto_pad", "SAME_UPPER");
  CHECK(conv_shape(model).pad == Padding{2, 2, 2, 2});
}

TEST_CASE("onnx conv: the zero threshold applies") {
  OnnxModel model = conv_model();
  model.add_node("Conv", {"x", "w"});
  ImportOptions options;
  options.zero_threshold = 70;
  const ConvLayer layer = model.import(options).layers.at(0);
  CHECK(std::count(layer.weights.begin(), layer.weights.end(), 0.0F) == 70);
}

TEST_CASE("onnx conv: what its file may not say") {
  OnnxModel model = conv_model();
  NodeMaker node = model.add_node("Conv", {"x", "w"});
  SECTION("kernel_shape") {
    node.set("kernel_shape", Dims{3, 5});
    rejects_conv(model, {"kernel_shape", "[3,5]", "[4,2,3,3]"});
  }
  SECTION("strides of one axis") {
    node.set("strides", Dims{1});
    rejects_conv(model, {"'strides' has 1 values"});
  }
  SECTION("stride 0") {
    node.set("strides", Dims{0, 1});
    rejects_conv(model, {"strides is 0"});
  }
  SECTION("huge stride") {
    node.set("strides", Dims{1, std::numeric_limits<std::int64_t>::max()});
    refuses_conv(model, {"strides is 9223372036854775807"});
  }
  SECTION("stride beyond a convolution's") {
    node.set("strides", Dims{1, 65});
    refuses_conv(model, {"stride_w is 65"});
  }
  SECTION("huge dilation") {
    node.set("dilations", Dims{std::int64_t{1} << 40, 1});
    refuses_conv(model, {"dilations is 1099511627776"});
  }
  SECTION("negative padding") {
    node.set("pads", Dims{-1, 0, 0, 0});
    rejects_conv(model, {"'pads' is -1"});
  }
  SECTION("padding of three sides") {
    node.set("pads", Dims{1, 1, 1});
    rejects_conv(model, {"'pads' has 3 values"});
  }
  SECTION("both paddings") {
    node.set("pads", Dims{1, 1, 1, 1}).set("auto_pad", "SAME_UPPER");
    rejects_conv(model, {"'pads' and auto_pad 'SAME_UPPER'"});
  }
  SECTION("auto_pad that is none") {
    node.set("auto_pad", "FULL");
    rejects_conv(model, {"'auto_pad' is 'FULL'"});
  }
  SECTION("groups 0") {
    node.set("group", 0);
    rejects_conv(model, {"'group' is 0"});
  }
  SECTION("groups that do not fit the input") {
    node.set("group", 2);
    rejects_conv(model, {"input 'x' has 2 channels", "2 groups take 4"});
  }
  SECTION("kernel larger than the image") {
    node.set("dilations", Dims{3, 1});
    refuses_conv(model, {"the output has no rows"});
  }
  SECTION("attribute that nobody knows") {
    node.set("winograd", 1);
    refuses_conv(model, {"attributes that burin does not know", "'winograd'"});
  }
  SECTION("attribute of another type") {
    node.set("group", "two");
    rejects_conv(model, {"'group' is of type STRING, it must be INT"});
  }
  SECTION("attribute twice") {
    node.set("group", 1).set("group", 1);
    rejects_conv(model, {"has the attribute 'group' twice"});
  }
}

TEST_CASE("onnx conv: weights that cannot be") {
  OnnxModel model = OnnxModel::of_image({2, 5, 6});
  model.add_node("Conv", {"x", "w"});
  SECTION("1-D") {
    model.floats("w", {4, 2, 3});
    refuses_conv(model, {"make it a 1-D convolution, its input is that of a 2-D one"});
  }
  SECTION("3-D") {
    model.floats("w", {4, 2, 3, 3, 3});
    refuses_conv(model, {"make it a 3-D convolution"});
  }
  SECTION("a list") {
    model.floats("w", {4});
    rejects_conv(model, {"[4]", "must be [K,C,R,S]"});
  }
  SECTION("an extent of 0") {
    model.floats("w", {4, 2, 0, 3}, {});
    model.proto.mutable_graph()->mutable_initializer(0)->clear_float_data();
    rejects_conv(model, {"no extent may be 0"});
  }
  SECTION("kernel too large") {
    model.floats("w", {1, 2, 12, 1});
    refuses_conv(model, {"12x1 kernel", "limit is 11"});
  }
  SECTION("another number of channels") {
    model.floats("w", {4, 3, 1, 1});
    rejects_conv(model, {"'x' has 2 channels", "take 3"});
  }
  SECTION("NaN") {
    model.floats("w", {1, 2, 1, 1}, {1, std::numeric_limits<float>::quiet_NaN()});
    rejects_conv(model, {"element 1 of its weight 'w' is nan"});
  }
  SECTION("integers") {
    auto& weights = model.integers("w", {1, 2});
    weights.clear_dims();
    for (const int extent : {1, 2, 1, 1}) weights.add_dims(extent);
    rejects_conv(model, {"'w'", "int64", "floating-point"});
  }
  SECTION("made by the network") {
    model.add_node("Relu", {"x"}, "w");
    refuses_conv(model, {"weight 'w' is computed from the input", "constant"});
  }
}

TEST_CASE("onnx conv: bias that does not fit") {
  OnnxModel model = conv_model();
  model.add_node("Conv", {"x", "w", "b"});
  SECTION("too long") {
    model.floats("b", {5});
    rejects_conv(model, {"bias 'b'", "[5]", "4 outputs"});
  }
  SECTION("one for all") {
    model.floats("b", {1});
    rejects_conv(model, {"bias 'b'", "[1]"});
  }
  SECTION("infinite") {
    model.floats("b", {4}, {1, 2, 3, std::numeric_limits<float>::infinity()});
    rejects_conv(model, {"element 3 of its bias 'b' is inf"});
  }
}

TEST_CASE("onnx conv: input that is no image") {
  OnnxModel model = OnnxModel::of_image({2});
  model.floats("w", {4, 2, 1, 1});
  model.add_node("Conv", {"x", "w"});
  refuses_conv(model, {"its input is 2 for each image"});
}

TEST_CASE("onnx conv: layers are named once each") {
  OnnxModel model = OnnxModel::of_image({2, 5, 6});
  model.floats("w", {2, 2, 1, 1});
  for (const auto& [from, to] : {std::pair("x", "a"), std::pair("a", "b"), std::pair("b", "y")}) {
    model.add_node("Conv", {from, "w"}, to).node.set_name("conv");
  }
  const Network network = model.import();
  REQUIRE(network.layers.size() == 3);
  CHECK(network.layers[0].name == "conv");
  CHECK(network.layers[1].name == "conv_2");
  CHECK(network.layers[2].name == "conv_3");
}

TEST_CASE("onnx gemm: matrix as it stands and transposed") {
  OnnxModel straight = gemm_model({3, 2});
  straight.add_node("Gemm", {"x", "m"});
  CHECK(linear(straight.import()).weights == std::vector<float>{1, 3, 5, 2, 4, 6});
  OnnxModel turned = gemm_model({2, 3});
  turned.add_node("Gemm", {"x", "m"}).set("transB", 1);
  CHECK(linear(turned.import()).weights == std::vector<float>{1, 2, 3, 4, 5, 6});
  CHECK(linear(turned.import()).in_features == 3);
  CHECK(linear(turned.import()).out_features == 2);
}

TEST_CASE("onnx gemm: alpha and beta scale matrix and bias") {
  OnnxModel model = gemm_model({3, 2}, {2});
  model.add_node("Gemm", {"x", "m", "c"}).set("alpha", 2.0F).set("beta", 0.5F);
  CHECK(linear(model.import()).weights == std::vector<float>{2, 6, 10, 4, 8, 12});
  CHECK(linear(model.import()).bias == std::vector<float>{0.5F, 1});
}

TEST_CASE("onnx gemm: bias as a row or one number") {
  OnnxModel row = gemm_model({3, 2}, {1, 2});
  row.add_node("Gemm", {"x", "m", "c"});
  CHECK(linear(row.import()).bias == std::vector<float>{1, 2});
  OnnxModel one = gemm_model({3, 2}, {1});
  one.add_node("Gemm", {"x", "m", "c"});
  CHECK(linear(one.import()).bias == std::vector<float>{1, 1});
}

TEST_CASE("onnx gemm: what is refused") {
  OnnxModel model = gemm_model({3, 2}, {2, 1});
  SECTION("transA") {
    model.add_node("Gemm", {"x", "m"}).set("transA", 1);
    refuses_conv(model, {"transA", "mix the images"});
  }
  SECTION("another number of features") {
    model.add_node("Gemm", {"x", "m"}).set("transB", 1);
    rejects_conv(model, {"3 features", "takes 2 and gives 3"});
  }
  SECTION("bias as a column") {
    model.add_node("Gemm", {"x", "m", "c"});
    refuses_conv(model, {"bias 'c'", "[2,1]", "another one for each image"});
  }
  SECTION("transB that is neither") {
    model.add_node("Gemm", {"x", "m"}).set("transB", 2);
    rejects_conv(model, {"'transB' is 2, it must be 0 or 1"});
  }
}

TEST_CASE("onnx matmul: a constant added becomes the bias") {
  OnnxModel model = gemm_model({3, 2}, {2});
  model.add_node("MatMul", {"x", "m"}, "product");
  model.add_node("Add", {"c", "product"});
  const Network network = model.import();
  CHECK(kinds(network) == "linear");
  CHECK(linear(network).bias == std::vector<float>{1, 2});
  CHECK(network.tensors[static_cast<std::size_t>(network.outputs[0])].name == "y");
}

TEST_CASE("onnx matmul: a product that others read keeps its values") {
  OnnxModel model = gemm_model({3, 2}, {2});
  model.output("product");
  model.add_node("MatMul", {"x", "m"}, "product");
  model.add_node("Add", {"product", "c"});
  const Network network = model.import();
  CHECK(kinds(network) == "linear channel_affine");
  CHECK(linear(network).bias.empty());
}

TEST_CASE("onnx matmul: of features along the last of several axes") {
  for (const auto& [shape, made] :
       {std::pair(std::vector<std::int64_t>{4, 3}, std::vector<std::int64_t>{4, 2}),
        std::pair(std::vector<std::int64_t>{2, 4, 5, 3}, std::vector<std::int64_t>{2, 4, 5, 2})}) {
    OnnxModel model = OnnxModel::of_image(shape);
    model.floats("m", {3, 2});
    model.add_node("MatMul", {"x", "m"});
    const Network network = model.import();
    CHECK(kinds(network) == "transpose reshape convolution reshape transpose");
    CHECK(last_shape(network) == made);
    CHECK(network.layers[0].weights == std::vector<float>{1, 3, 5, 2, 4, 6});
  }
}

TEST_CASE("onnx gemm: features are flat") {
  OnnxModel model = OnnxModel::of_image({4, 3});
  model.floats("m", {3, 2});
  model.add_node("Gemm", {"x", "m"});
  refuses_conv(model, {"its input is 4x3 for each image", "flat features"});
}
