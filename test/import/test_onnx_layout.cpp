// Reshapes of ONNX models, and the arithmetic on sizes that exporters leave around them.
#include <cmath>

#include "compiler/network/reference_network.h"
#include "test/import/files.h"
#include "test/import/onnx_faults.h"
#include "test/import/onnx_model.h"

using namespace burin;
using namespace burin_test;

namespace {

using Dims = std::vector<std::int64_t>;

OnnxModel reshape_model(const Dims& wanted, int opset = 13) {
  OnnxModel model = OnnxModel::of_image({2, 3, 4}, opset);
  model.integers("shape", wanted);
  model.add_node("Reshape", {"x", "shape"});
  return model;
}

Dims reshaped(const Dims& wanted) { return last_shape(reshape_model(wanted).import()); }

// The number of images in a list, as torch computes it: Shape, Gather, Unsqueeze.
void add_batch_size(OnnxModel& model) {
  model.integer("zero", 0);
  model.integers("axis0", {0});
  model.add_node("Shape", {"x"}, "shape of x");
  model.add_node("Gather", {"shape of x", "zero"}, "batch").set("axis", 0);
  model.add_node("Unsqueeze", {"batch", "axis0"}, "batch list");
}

}  // namespace

TEST_CASE("onnx flatten") {
  OnnxModel model = OnnxModel::of_image({2, 3, 4});
  model.add_node("Flatten", {"x"});
  CHECK(last_shape(model.import()) == Dims{24});
  OnnxModel from_end = OnnxModel::of_image({2, 3, 4});
  from_end.add_node("Flatten", {"x"}).set("axis", -3);
  CHECK(last_shape(from_end.import()) == Dims{24});
  OnnxModel second = OnnxModel::of_image({2, 3, 4});
  second.add_node("Flatten", {"x"}).set("axis", 2);
  refuses(second, {"'axis' is 2"});
  OnnxModel beyond = OnnxModel::of_image({2, 3, 4});
  beyond.add_node("Flatten", {"x"}).set("axis", 5);
  rejects(beyond, {"axis 5"});
}

TEST_CASE("onnx reshape: zeros and -1") {
  CHECK(reshaped({0, -1}) == Dims{24});
  CHECK(reshaped({0, 0, 12}) == Dims{2, 12});
  CHECK(reshaped({0, 4, -1, 2}) == Dims{4, 3, 2});
  CHECK(reshaped({-1, 24}) == Dims{24});
  CHECK(reshaped({0, 2, 0, 0}) == Dims{2, 3, 4});
}

TEST_CASE("onnx reshape: a fixed batch may be spelled out") {
  const auto with_batch = [](std::int64_t batch, const Dims& wanted) {
    OnnxModel model(13);
    model.input("x", {batch, 2, 3, 4});
    model.output("y");
    model.integers("shape", wanted);
    model.add_node("Reshape", {"x", "shape"});
    return model;
  };
  CHECK(last_shape(with_batch(1, {1, -1}).import()) == Dims{24});
  CHECK(last_shape(with_batch(5, {5, 24}).import()) == Dims{24});
  refuses(with_batch(5, {1, -1}), {"the first axis of its shape is 1"});
}

TEST_CASE("onnx reshape: images must not mix") {
  refuses(reshape_model({1, -1}), {"the first axis of its shape is 1; it must stay the batch"});
  refuses(reshape_model({-1}), {"must stay the batch"});
  refuses(reshape_model({2, -1}), {"first axis of its shape is 2"});
  refuses(reshape_model({-1, 12}), {"[-1,12] has 12 elements behind the first axis, and an image 24"});
}

TEST_CASE("onnx reshape: shapes that cannot be") {
  rejects(reshape_model({0, 5, -1}), {"[5,-1]", "does not divide 24"});
  rejects(reshape_model({0, -1, -1}), {"more than one -1"});
  rejects(reshape_model({0, 24, 1, 1, 0}), {"a 0 where its input has no axis"});
  refuses(reshape_model({0, -2, 12}), {"holds -2"});
  rejects(reshape_model({0, 4611686018427387904, 4611686018427387904}), {"elements"});
  refuses(reshape_model({}), {"no axes"});
  OnnxModel zero = OnnxModel::of_image({2, 3, 4}, 14);
  zero.integers("shape", {-1, 0, 12});
  zero.add_node("Reshape", {"x", "shape"}).set("allowzero", 1);
  refuses(zero, {"holds 0"});
  OnnxModel real = OnnxModel::of_image({2, 3, 4});
  real.floats("shape", {2});
  real.add_node("Reshape", {"x", "shape"});
  refuses(real, {"shape 'shape' is no constant list"});
}

TEST_CASE("onnx reshape: torch's view(x.size(0), -1)") {
  OnnxModel model = OnnxModel::of_image({2, 3, 4});
  add_batch_size(model);
  model.integers("rest", {-1});
  model.add_node("Concat", {"batch list", "rest"}, "wanted").set("axis", 0);
  model.add_node("Reshape", {"x", "wanted"});
  CHECK(kinds(model.import()) == "reshape");
  CHECK(last_shape(model.import()) == Dims{24});
}

TEST_CASE("onnx reshape: the number of images elsewhere") {
  OnnxModel model = OnnxModel::of_image({2, 3, 4});
  add_batch_size(model);
  model.integers("rest", {24});
  model.add_node("Concat", {"rest", "batch list"}, "wanted").set("axis", 0);
  model.add_node("Reshape", {"x", "wanted"});
  refuses(model, {"number of images as axis 1"});
}

TEST_CASE("onnx sizes: slices, casts and constants") {
  OnnxModel model = OnnxModel::of_image({2, 3, 4});
  model.integers("one", {1});
  model.integers("end", {9223372036854775807});
  model.add_node("Shape", {"x"}, "shape of x");
  model.add_node("Slice", {"shape of x", "one", "end"}, "image");
  model.add_node("Cast", {"image"}, "cast").set("to", 7);
  auto& minus = *model.add_node("Constant", {}, "minus").add("value", onnx::AttributeProto::TENSOR).mutable_t();
  set_integers(minus, {1}, {-1});
  model.add_node("Concat", {"minus", "cast"}, "wanted").set("axis", 0);
  model.add_node("Reshape", {"x", "wanted"});
  CHECK(last_shape(model.import()) == Dims{2, 3, 4});
}

TEST_CASE("onnx sizes: Shape with a range") {
  OnnxModel model = OnnxModel::of_image({2, 3, 4}, 15);
  model.add_node("Shape", {"x"}, "shape of x").set("start", 0).set("end", -2);
  model.integers("rest", {12});
  model.add_node("Concat", {"shape of x", "rest"}, "wanted").set("axis", 0);
  model.add_node("Reshape", {"x", "wanted"});
  CHECK(last_shape(model.import()) == Dims{2, 12});
}

TEST_CASE("onnx sizes: faults") {
  OnnxModel model = OnnxModel::of_image({2, 3, 4});
  model.integer("nine", 9);
  model.add_node("Shape", {"x"}, "shape of x");
  model.add_node("Gather", {"shape of x", "nine"}, "extent");
  model.add_node("Reshape", {"x", "extent"});
  rejects(model, {"its index is 9, its input has 4 values"});
  OnnxModel flowing = OnnxModel::of_image({2, 3, 4});
  flowing.integer("nine", 9);
  flowing.add_node("Shape", {"x"}, "shape of x");
  flowing.add_node("Gather", {"shape of x", "x"});
  refuses(flowing, {"its indices are computed from the network's input"});
  OnnxModel output = OnnxModel::of_image({2, 3, 4});
  output.add_node("Shape", {"x"});
  expect_error(ErrorKind::unsupported, {"net.onnx: its output 'y' does not depend on its inputs"},
               [&] { output.import(); });
}

TEST_CASE("onnx squeeze and unsqueeze") {
  OnnxModel model = OnnxModel::of_image({4, 1, 1});
  model.integers("axes", {2, -1});
  model.add_node("Squeeze", {"x", "axes"}, "flat");
  model.add_node("Unsqueeze", {"flat", "axes"});
  const Network network = model.import();
  CHECK(network.tensors[1].shape == Dims{4});
  CHECK(last_shape(network) == Dims{4, 1, 1});
}

TEST_CASE("onnx squeeze: axes as attribute, and without axes") {
  OnnxModel old = OnnxModel::of_image({4, 1, 1}, 12);
  old.add_node("Squeeze", {"x"}).set("axes", Dims{2, 3});
  CHECK(last_shape(old.import()) == Dims{4});
  OnnxModel all = OnnxModel::of_image({4, 1, 1});
  all.add_node("Squeeze", {"x"});
  CHECK(last_shape(all.import()) == Dims{4});
}

TEST_CASE("onnx squeeze: what is refused") {
  const auto model = [](const std::string& op, const Dims& axes) {
    OnnxModel made = OnnxModel::of_image({4, 1, 1});
    made.integers("axes", axes);
    made.add_node(op, {"x", "axes"});
    return made;
  };
  refuses(model("Squeeze", {0}), {"drops the batch"});
  rejects(model("Squeeze", {1}), {"axis 1, which has 4 elements"});
  rejects(model("Squeeze", {2, 2}), {"names an axis twice"});
  rejects(model("Squeeze", {7}), {"axis 7 is none of 4"});
  expect_error(ErrorKind::unsupported, {"the batch is axis 1 of its output 'y'"},
               [&] { model("Unsqueeze", {0}).import(); });
  OnnxModel one(13);
  one.input("x", {1, 4, 1, 1});
  one.output("y");
  one.add_node("Squeeze", {"x"});
  refuses(one, {"drops the batch"});
}

TEST_CASE("onnx transpose") {
  OnnxModel model = OnnxModel::of_image({2, 3, 4});
  model.add_node("Transpose", {"x"}).set("perm", Dims{0, 2, 3, 1});
  CHECK(last_shape(model.import()) == Dims{3, 4, 2});
  OnnxModel batch = OnnxModel::of_image({2, 3, 4});
  batch.add_node("Transpose", {"x"});
  expect_error(ErrorKind::unsupported, {"the batch is axis 3 of its output 'y'"}, [&] { batch.import(); });
  OnnxModel read = OnnxModel::of_image({2, 3, 4});
  read.add_node("Transpose", {"x"}, "t").set("perm", Dims{1, 0, 2, 3});
  read.add_node("Relu", {"t"});
  refuses(read, {"the batch is axis 1 of its input 't', where the nodes before it moved it"});
  OnnxModel wrong = OnnxModel::of_image({2, 3, 4});
  wrong.add_node("Transpose", {"x"}).set("perm", Dims{0, 1, 1, 2});
  rejects(wrong, {"'perm' is [0,1,1,2]"});
}

namespace {

using Values = std::vector<double>;

// Both images of x count from 0 and from 100 on.
Values of_counted(const OnnxModel& model) {
  const Network network = model.import();
  const std::int64_t elements = network.tensors[static_cast<std::size_t>(network.inputs[0])].elements();
  std::vector<float> images;
  for (std::int64_t i = 0; i < 2 * elements; ++i) {
    images.push_back(static_cast<float>(i < elements ? i : 100 + i - elements));
  }
  return run_reference(network, 2, {images})[0];
}

}  // namespace

TEST_CASE("onnx transpose: queries, keys and values come before the batch, and one of them goes") {
  // Tokens, (query, key, value), heads, features; as timm writes attention.
  const auto part = [](const char* how, int index) {
    OnnxModel model = OnnxModel::of_image({2, 3, 1, 2});
    model.add_node("Transpose", {"x"}, "t").set("perm", Dims{2, 0, 3, 1, 4});
    model.integer("index", index);
    model.integers("starts", {index});
    model.integers("ends", {index + 1});
    model.integers("axes", {0});
    const std::string gather = "Gather", slice = "Slice";
    if (how == gather) model.add_node("Gather", {"t", "index"}, "p").set("axis", 0);
    if (how == slice) model.add_node("Slice", {"t", "starts", "ends", "axes"}, "s");
    if (how != gather && how != slice) {
      onnx::NodeProto& split = model.add_node("Split", {"t"}, "s0").set("axis", -5).node;
      split.add_output("s1");
      split.add_output("s2");
    }
    const std::string parts[] = {"s0", "s1", "s2"};
    if (how != gather) model.add_node("Squeeze", {how == slice ? "s" : parts[index], "axes"}, "p");
    model.add_node("Identity", {"p"});
    return model;
  };
  for (const char* how : {"Gather", "Slice", "Split"}) {
    INFO(how);
    CHECK(last_shape(part(how, 0).import()) == Dims{1, 2, 2});
    CHECK(of_counted(part(how, 0)) == Values{0, 1, 6, 7, 100, 101, 106, 107});
    CHECK(of_counted(part(how, 2)) == Values{4, 5, 10, 11, 104, 105, 110, 111});
  }
}

TEST_CASE("onnx transpose: the batch comes back") {
  OnnxModel twice = OnnxModel::of_image({2, 3});
  twice.add_node("Transpose", {"x"}, "t").set("perm", Dims{2, 0, 1});
  twice.add_node("Transpose", {"t"}).set("perm", Dims{1, 0, 2});
  CHECK(last_shape(twice.import()) == Dims{3, 2});
  CHECK(of_counted(twice) == Values{0, 3, 1, 4, 2, 5, 100, 103, 101, 104, 102, 105});
  // An axis before the batch, and one behind it, that go again.
  OnnxModel wide = OnnxModel::of_image({2, 2});
  wide.integers("both", {0, 3});
  wide.integers("first", {0});
  wide.add_node("Unsqueeze", {"x", "both"}, "u");
  wide.add_node("Transpose", {"u"}, "t").set("perm", Dims{3, 4, 0, 1, 2});
  wide.add_node("Squeeze", {"t", "first"}, "s");
  wide.add_node("Transpose", {"s"}).set("perm", Dims{2, 0, 3, 1});
  CHECK(last_shape(wide.import()) == Dims{2, 2, 1});
  CHECK(of_counted(wide) == Values{0, 2, 1, 3, 100, 102, 101, 103});
  // Indices of two axes before the batch.
  OnnxModel chosen = OnnxModel::of_image({2});
  chosen.integers("pairs", {1, 0, 1, 1});
  onnx::TensorProto& pairs = *chosen.proto.mutable_graph()->mutable_initializer(0);
  pairs.clear_dims();
  pairs.add_dims(2);
  pairs.add_dims(2);
  chosen.add_node("Transpose", {"x"}, "t").set("perm", Dims{1, 0});
  chosen.add_node("Gather", {"t", "pairs"}, "g").set("axis", 0);
  chosen.add_node("Transpose", {"g"}).set("perm", Dims{2, 0, 1});
  CHECK(of_counted(chosen) == Values{1, 0, 1, 1, 101, 100, 101, 101});
}

TEST_CASE("onnx transpose: what would mix images that lie along another axis") {
  const auto moved = [](const char* op, const std::vector<std::string>& inputs, int axis) {
    OnnxModel model = OnnxModel::of_image({4, 3});
    model.integer("index", 0);
    model.integers("starts", {0});
    model.integers("ends", {1});
    model.integers("axes", {1});
    model.add_node("Transpose", {"x"}, "t").set("perm", Dims{1, 0, 2});
    NodeMaker node = model.add_node(op, inputs);
    if (axis >= 0) node.set("axis", axis);
    return model;
  };
  refuses(moved("Gather", {"t", "index"}, 1), {"chooses along the batch (axis 1)"});
  refuses(moved("Slice", {"t", "starts", "ends", "axes"}, -1), {"cuts the batch (axis 1)"});
  refuses(moved("Split", {"t"}, 1), {"splits the batch (axis 1)"});
  refuses(moved("Squeeze", {"t", "axes"}, -1), {"drops the batch (axis 1)"});
  refuses(moved("Reshape", {"t", "axes"}, -1), {"the batch is axis 1 of its input 't'"});
}

TEST_CASE("onnx constants: transposed, reshaped, renamed") {
  OnnxModel model = OnnxModel::of_image({3});
  model.floats("list", {6});
  model.integers("shape", {2, -1});
  model.add_node("Reshape", {"list", "shape"}, "matrix");
  model.add_node("Transpose", {"matrix"}, "turned").set("perm", Dims{1, 0});
  model.add_node("Identity", {"turned"}, "same");
  model.add_node("MatMul", {"x", "same"});
  CHECK(last<Linear>(model.import()).weights == std::vector<float>{1, 2, 3, 4, 5, 6});
}

TEST_CASE("onnx constants: three axes transposed") {
  OnnxModel model = OnnxModel::of_image({2, 3, 3});
  model.floats("w", {3, 1, 2, 1});
  model.add_node("Transpose", {"w"}, "turned").set("perm", Dims{3, 2, 1, 0});
  model.add_node("Conv", {"x", "turned"});
  // [1,2,1,3]: kernel column k of channel c is element k of the first axis and c of the third.
  CHECK(model.import().layers.at(0).weights == std::vector<float>{1, 3, 5, 2, 4, 6});
}

TEST_CASE("onnx constants: every form of the Constant node") {
  const auto bias = [](auto add_value) {
    OnnxModel model = OnnxModel::of_image({2, 3, 3});
    NodeMaker node = model.add_node("Constant", {}, "c");
    add_value(node);
    model.add_node("Add", {"x", "c"});
    return last<ChannelAffine>(model.import()).shift;
  };
  using onnx::AttributeProto;
  CHECK(bias([](NodeMaker& node) { node.set("value_float", 3.0F); }) == std::vector<float>{3, 3});
  CHECK(bias([](NodeMaker& node) { node.add("value_floats", AttributeProto::FLOATS).add_floats(4); }) ==
        std::vector<float>{4, 4});
  CHECK(bias([](NodeMaker& node) {
          set_floats(*node.add("value", AttributeProto::TENSOR).mutable_t(), {2, 1, 1}, {5, 6});
        }) == std::vector<float>{5, 6});
  CHECK(bias([](NodeMaker& node) {
          auto& sparse = *node.add("sparse_value", AttributeProto::SPARSE_TENSOR).mutable_sparse_tensor();
          set_floats(*sparse.mutable_values(), {1}, {7});
          set_integers(*sparse.mutable_indices(), {1}, {1});
          for (const int extent : {2, 1, 1}) sparse.add_dims(extent);
        }) == std::vector<float>{0, 7});
  OnnxModel integers = OnnxModel::of_image({2, 3, 3});
  integers.add_node("Constant", {}, "c").set("value_ints", Dims{0, 2, 9});
  integers.add_node("Reshape", {"x", "c"});
  CHECK(last_shape(integers.import()) == Dims{2, 9});
  OnnxModel text = OnnxModel::of_image({2, 3, 3});
  text.add_node("Constant", {}, "c").set("value_string", "hello");
  text.add_node("Add", {"x", "c"});
  refuses(text, {"holds no numbers"});
}

TEST_CASE("onnx concat") {
  OnnxModel model = OnnxModel::of_image({2, 3, 4});
  model.add_node("Relu", {"x"}, "r");
  SECTION("channels") {
    model.add_node("Concat", {"x", "r"}).set("axis", 1);
    CHECK(last_shape(model.import()) == Dims{4, 3, 4});
  }
  SECTION("columns, from the end") {
    model.add_node("Concat", {"x", "r", "x"}).set("axis", -1);
    CHECK(last_shape(model.import()) == Dims{2, 3, 12});
  }
  SECTION("batch") {
    model.add_node("Concat", {"x", "r"}).set("axis", 0);
    refuses(model, {"joins batches"});
  }
  SECTION("no axis") {
    model.add_node("Concat", {"x", "r"});
    rejects(model, {"lacks the attribute 'axis'"});
  }
  SECTION("a constant") {
    model.floats("c", {1, 2, 3, 4});
    model.add_node("Concat", {"x", "c"}).set("axis", 1);
    CHECK(kinds(model.import()) == "channel_view reduce reshape matmul reshape concat");
    const Values joined = of_counted(model);
    for (std::size_t i = 0; i < 24; ++i) {
      CHECK(joined[i] == static_cast<double>(i));
      CHECK(joined[24 + i] == static_cast<double>(i + 1));
      CHECK(joined[72 + i] == static_cast<double>(i + 1));
    }
  }
  SECTION("constants between, along columns") {
    model.floats("c", {1, 2, 3, 1});
    model.add_node("Concat", {"c", "x", "c"}).set("axis", 3);
    CHECK(last_shape(model.import()) == Dims{2, 3, 6});
    const Values joined = of_counted(model);
    CHECK(Values(joined.begin(), joined.begin() + 12) == Values{1, 0, 1, 2, 3, 1, 2, 4, 5, 6, 7, 2});
  }
  SECTION("a constant that has other values for each image, or other axes") {
    model.floats("c", {2, 2, 3, 4});
    model.add_node("Concat", {"x", "c"}).set("axis", 1);
    refuses(model, {"its constant 'c' has the shape [2,2,3,4]", "whose first axis is 1"});
    OnnxModel flat = OnnxModel::of_image({2, 3, 4});
    flat.floats("c", {1, 24});
    flat.add_node("Concat", {"x", "c"}).set("axis", 1);
    refuses(flat, {"its constant 'c' has the shape [1,24]"});
  }
  SECTION("whatever the input is, the constant stays") {
    model.floats("c", {1, 2, 3, 4});
    model.add_node("Concat", {"c", "r"}).set("axis", 1);
    const std::vector<float> image(24, std::nanf(""));
    CHECK(run_reference(model.import(), 1, {image})[0][23] == 24);
  }
}

TEST_CASE("onnx expand: a constant for each image") {
  const auto expanded = [](const Dims& dims, const Dims& behind) {
    OnnxModel model = OnnxModel::of_image({2, 3});
    model.floats("c", dims);
    model.integer("zero", 0);
    model.integers("rest", behind);
    model.integers("first", {0});
    model.add_node("Shape", {"x"}, "shape");
    model.add_node("Gather", {"shape", "zero"}, "count");
    model.add_node("Unsqueeze", {"count", "first"}, "list");
    model.add_node("Concat", {"list", "rest"}, "wanted").set("axis", 0);
    model.add_node("Expand", {"c", "wanted"}, "token");
    model.add_node("Concat", {"token", "x"}).set("axis", 1);
    return model;
  };
  const Values joined = {1, 2, 3, 0, 1, 2, 3, 4, 5, 1, 2, 3, 100, 101, 102, 103, 104, 105};
  CHECK(of_counted(expanded({1, 1, 3}, {1, 3})) == joined);
  CHECK(of_counted(expanded({3}, {1, 3})) == joined);
  CHECK(of_counted(expanded({1, 1, 1}, {1, 3})) ==
        Values{1, 1, 1, 0, 1, 2, 3, 4, 5, 1, 1, 1, 100, 101, 102, 103, 104, 105});
  rejects(expanded({1, 1, 2}, {1, 3}), {"it makes 3 of an axis of 2 elements"});
  refuses(expanded({2, 1, 3}, {1, 3}), {"it repeats a constant of the shape [2,1,3]"});
}

TEST_CASE("onnx gather: channels, as models do that normalize each color") {
  OnnxModel model = OnnxModel::of_image({3, 4, 5});
  model.integer("two", -1);
  model.integers("axes", {1});
  model.floats("half", {}, {0.5F});
  model.add_node("Gather", {"x", "two"}, "channel").set("axis", 1);
  model.add_node("Unsqueeze", {"channel", "axes"}, "image");
  model.add_node("Mul", {"image", "half"}, "scaled");
  model.add_node("Concat", {"scaled", "x"}).set("axis", 1);
  const Network network = model.import();
  CHECK(kinds(network) == "channel_view reshape reshape channel_affine concat");
  CHECK(std::get<ChannelView>(network.operators[0].kind).begin == 2);
  CHECK(last_shape(network) == Dims{4, 4, 5});
}

TEST_CASE("onnx gather: several channels keep their axis") {
  OnnxModel model = OnnxModel::of_image({3, 4, 5});
  model.integers("colors", {2, 0, 0});
  model.add_node("Gather", {"x", "colors"}).set("axis", -3);
  const Network network = model.import();
  CHECK(kinds(network) == "convolution");
  CHECK(network.layers.at(0).weights == std::vector<float>{0, 0, 1, 1, 0, 0, 1, 0, 0});
  CHECK(network.layers.at(0).name == "y");
  CHECK(last_shape(network) == Dims{3, 4, 5});
}

TEST_CASE("onnx gather: what is refused") {
  const auto model = [](const Dims& indices, int axis) {
    OnnxModel made = OnnxModel::of_image({3, 4, 5});
    made.integers("indices", indices);
    made.add_node("Gather", {"x", "indices"}).set("axis", axis);
    return made;
  };
  rejects(model({3}, 1), {"its index is 3, its input has 3 there"});
  rejects(model({}, 1), {"chooses nothing"});
  refuses(model({0}, 0), {"along the batch (axis 0)"});
}
