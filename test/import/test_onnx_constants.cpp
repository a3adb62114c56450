// Operators of ONNX models on constants alone: they are evaluated when the model is read.
#include <cmath>

#include "test/import/files.h"
#include "test/import/onnx_constants.h"
#include "test/import/onnx_faults.h"

using namespace burin;
using namespace burin_test;

namespace {

using Floats = std::vector<float>;

// op(a, b) of two lists.
Floats of_lists(const std::string& op, const Floats& a, const Floats& b) {
  OnnxModel model = constants_model();
  model.floats("a", {static_cast<std::int64_t>(a.size())}, a);
  model.floats("b", {static_cast<std::int64_t>(b.size())}, b);
  model.add_node(op, {"a", "b"}, "c");
  return bias_of(model, static_cast<std::int64_t>(std::max(a.size(), b.size())));
}

Floats of_integers(const std::string& op, const Dims& a, const Dims& b) {
  OnnxModel model = constants_model();
  model.integers("a", a);
  model.integers("b", b);
  model.add_node(op, {"a", "b"}, "c");
  return bias_of(model, static_cast<std::int64_t>(a.size()), false);
}

// op(c0) of one list, with what `set` adds to the node.
template <typename Set>
Floats of_list(const std::string& op, const Dims& dims, const Floats& values, std::int64_t numbers, Set set,
               int opset = 13) {
  OnnxModel model = constants_model(opset);
  model.floats("c0", dims, values);
  NodeMaker node = model.add_node(op, {"c0"}, "c");
  set(model, node);
  return bias_of(model, numbers);
}

Floats of_list(const std::string& op, const Floats& values) {
  return of_list(op, {static_cast<std::int64_t>(values.size())}, values, static_cast<std::int64_t>(values.size()),
                 [](auto&, auto&) {});
}

void refuses_constant(OnnxModel model, std::int64_t numbers, std::initializer_list<std::string_view> parts) {
  add_layer(model, numbers);
  refuses(model, parts);
}

}  // namespace

TEST_CASE("onnx constants: triangles of matrices") {
  const auto triangle = [](int upper, std::optional<std::int64_t> diagonal) {
    return of_list("Trilu", {1, 2, 3}, {1, 2, 3, 4, 5, 6}, 6, [&](auto& model, auto& node) {
      node.set("upper", upper);
      if (!diagonal) return;
      model.integer("k", *diagonal);
      node.node.add_input("k");
    });
  };
  CHECK(triangle(1, {}) == Floats{1, 2, 3, 0, 5, 6});
  CHECK(triangle(0, {}) == Floats{1, 0, 0, 4, 5, 0});
  CHECK(triangle(1, 1) == Floats{0, 2, 3, 0, 0, 6});
  CHECK(triangle(0, 1) == Floats{1, 2, 0, 4, 5, 6});
  CHECK(triangle(1, -5) == Floats{1, 2, 3, 4, 5, 6});
  CHECK(triangle(0, std::numeric_limits<std::int64_t>::min()) == Floats(6, 0));
}

TEST_CASE("onnx constants: arithmetic repeats as NumPy does") {
  CHECK(of_lists("Add", {1, 2}, {10}) == Floats{11, 12});
  CHECK(of_lists("Sub", {1, 2}, {3, 5}) == Floats{-2, -3});
  CHECK(of_lists("Mul", {2}, {3, 5}) == Floats{6, 10});
  CHECK(of_lists("Div", {1, 3}, {2, 4}) == Floats{0.5F, 0.75F});
  CHECK(of_lists("Pow", {2, 9}, {3, 0.5F}) == Floats{8, 3});
  CHECK(of_lists("Max", {1, 5}, {3, 2}) == Floats{3, 5});
  CHECK(of_lists("Min", {1, 5}, {3, 2}) == Floats{1, 2});
  OnnxModel table = constants_model();
  table.floats("a", {2, 1}, {1, 2});
  table.floats("b", {1, 3}, {10, 20, 30});
  table.add_node("Add", {"a", "b"}, "c");
  CHECK(bias_of(table, 6) == Floats{11, 21, 31, 12, 22, 32});
}

TEST_CASE("onnx constants: integers are exact") {
  // 2^53 + 1 is none of a double.
  constexpr std::int64_t kLarge = (std::int64_t{1} << 53) + 1;
  OnnxModel model = constants_model();
  model.integers("a", {kLarge});
  model.integers("b", {kLarge - 1});
  model.add_node("Sub", {"a", "b"}, "c");
  CHECK(bias_of(model, 1, false) == Floats{1});
  CHECK(of_integers("Div", {7, -7, 7}, {2, 2, -2}) == Floats{3, -3, -3});
  CHECK(of_integers("Mod", {7, -7, 7}, {3, 3, -3}) == Floats{1, 2, -2});
  CHECK(of_integers("Pow", {2, -1, 0}, {10, 3, 0}) == Floats{1024, -1, 1});
}

TEST_CASE("onnx constants: integers that no 64 bits hold, and divisions by 0") {
  const auto model = [](const std::string& op, std::int64_t a, std::int64_t b) {
    OnnxModel made = constants_model();
    made.integers("a", {a});
    made.integers("b", {b});
    made.add_node(op, {"a", "b"}, "c");
    add_layer(made, 1, false);
    return made;
  };
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  for (const char* op : {"Add", "Mul", "Pow"}) {
    rejects(model(op, kMost, kMost), {"node 'c'", "leaves the range of 64-bit integers"});
  }
  rejects(model("Div", -kMost - 1, -1), {"leaves the range of 64-bit integers"});
  for (const char* op : {"Div", "Mod"}) rejects(model(op, 5, 0), {"divides the integer 5 by 0"});
  refuses(model("Pow", 5, -1), {"the integer 5 to the power of -1"});
}

TEST_CASE("onnx constants: the largest and the smallest integer are compared") {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  OnnxModel model = constants_model();
  model.integers("a", {kMost});
  model.integers("b", {-kMost - 1});
  model.add_node("Greater", {"a", "b"}, "greater");
  model.integers("yes", {1});
  model.integers("no", {0});
  model.add_node("Where", {"greater", "yes", "no"}, "c");
  CHECK(bias_of(model, 1, false) == Floats{1});
}

TEST_CASE("onnx constants: without numbers, with extents whose product no 64 bits hold") {
  OnnxModel model = constants_model();
  auto& empty = *model.proto.mutable_graph()->add_initializer();
  empty.set_name("empty");
  empty.set_data_type(onnx::TensorProto::FLOAT);
  SECTION("they are walked by nobody") {
    for (const std::int64_t extent : {std::int64_t{0}, std::int64_t{1} << 40, std::int64_t{1} << 40}) {
      empty.add_dims(extent);
    }
    model.integers("starts", {std::int64_t{1} << 39});
    model.integers("ends", {std::int64_t{1} << 40});
    model.integers("axes", {1});
    model.add_node("Slice", {"empty", "starts", "ends", "axes"}, "cut");
    model.add_node("Flatten", {"cut"}, "flattened").set("axis", 3);
    model.add_node("ReduceSum", {"flattened"}, "c");
    CHECK(bias_of(model, 1) == Floats{0});
  }
  SECTION("nor where an axis is repeated before the one that has none") {
    for (const std::int64_t extent : {std::int64_t{1} << 30, std::int64_t{0}}) empty.add_dims(extent);
    model.integers("repeats", {1, std::int64_t{1} << 40});
    model.add_node("Tile", {"empty", "repeats"}, "repeated");
    model.add_node("ReduceSum", {"repeated"}, "c").set("keepdims", 0);
    CHECK(bias_of(model, 1) == Floats{0});
  }
  SECTION("an extent that is too large") {
    for (const std::int64_t extent : {std::int64_t{0}, std::int64_t{1} << 62}) empty.add_dims(extent);
    model.add_node("Neg", {"empty"}, "c");
    refuses_constant(model, 1, {"node 'c' (Neg)", "[0,4611686018427387904]", "kMaxFoldedExtent"});
  }
}

TEST_CASE("onnx constants: functions of one number") {
  CHECK(of_list("Sqrt", {4, 9}) == Floats{2, 3});
  CHECK(of_list("Neg", {4, -9}) == Floats{-4, 9});
  CHECK(of_list("Abs", {4, -9}) == Floats{4, 9});
  CHECK(of_list("Sign", {4, -9, 0}) == Floats{1, -1, 0});
  CHECK(of_list("Floor", {1.5F, -1.5F}) == Floats{1, -2});
  CHECK(of_list("Ceil", {1.5F, -1.5F}) == Floats{2, -1});
  CHECK(of_list("Round", {1.5F, 2.5F, -0.5F}) == Floats{2, 2, 0});
  CHECK(of_list("Reciprocal", {4, -0.5F}) == Floats{0.25F, -2});
  CHECK(of_list("Exp", {0, 1}) == Floats{1, std::exp(1.0F)});
  CHECK(of_list("Log", {1}) == Floats{0});
}

TEST_CASE("onnx constants: clipped, integers too") {
  OnnxModel model = constants_model();
  model.integers("a", {-5, 3, 9});
  model.integer("low", 0);
  model.integer("high", 4);
  SECTION("on both sides") {
    model.add_node("Clip", {"a", "low", "high"}, "c");
    CHECK(bias_of(model, 3, false) == Floats{0, 3, 4});
  }
  SECTION("above") {
    model.add_node("Clip", {"a", "", "high"}, "c");
    CHECK(bias_of(model, 3, false) == Floats{-5, 3, 4});
  }
  SECTION("by attributes") {
    CHECK(of_list(
              "Clip", {3}, {-5, 3, 9}, 3, [](auto&, NodeMaker& node) { node.set("min", 0.5F).set("max", 4.0F); }, 6) ==
          Floats{0.5F, 3, 4});
  }
}

TEST_CASE("onnx constants: NaN compares with nothing") {
  OnnxModel model = constants_model();
  model.floats("a", {2}, {-1, 1});
  model.add_node("Log", {"a"}, "b");  // NaN and 0
  model.add_node("Equal", {"b", "b"}, "is number");
  model.floats("zero", {}, {0});
  model.floats("one", {}, {1});
  model.add_node("Where", {"is number", "one", "zero"}, "c");
  CHECK(bias_of(model, 2) == Floats{0, 1});
}

TEST_CASE("onnx constants: what a model decides, it decides in float32") {
  // 10 * 0.7 is 6.9999998807907104 in double, where 0.7 is a float32; in float32 it is 7.
  OnnxModel model = constants_model();
  model.floats("ten", {1}, {10});
  model.floats("scale", {1}, {0.7F});
  model.add_node("Mul", {"ten", "scale"}, "product");
  OnnxModel rounded = model;
  rounded.add_node("Floor", {"product"}, "c");
  CHECK(bias_of(rounded, 1) == Floats{7});
  model.add_node("Cast", {"product"}, "integer").set("to", 7);
  model.add_node("Cast", {"integer"}, "c").set("to", 1);
  CHECK(bias_of(model, 1) == Floats{7});
}

TEST_CASE("onnx constants: reductions") {
  const Dims dims = {2, 3};
  const Floats values = {1, 2, 3, 4, 5, -6};
  const auto along_rows = [&](const std::string& op) {
    return of_list(op, dims, values, 2, [](auto&, NodeMaker& node) { node.set("axes", Dims{-1}).set("keepdims", 0); });
  };
  CHECK(along_rows("ReduceMean") == Floats{2, 1});
  CHECK(along_rows("ReduceMax") == Floats{3, 5});
  CHECK(along_rows("ReduceMin") == Floats{1, -6});
  CHECK(along_rows("ReduceProd") == Floats{6, -120});
  CHECK(along_rows("ReduceL1") == Floats{6, 15});
  CHECK(along_rows("ReduceSumSquare") == Floats{14, 77});
  CHECK(along_rows("ReduceL2") == Floats{std::sqrt(14.0F), std::sqrt(77.0F)});
  const auto sum = [&](int opset, std::int64_t numbers, auto set) {
    return of_list("ReduceSum", dims, values, numbers, set, opset);
  };
  CHECK(sum(11, 3, [](auto&, NodeMaker& node) { node.set("axes", Dims{0}); }) == Floats{5, 7, -3});
  CHECK(sum(13, 3, [](OnnxModel& model, NodeMaker& node) {
          model.integers("axes", {0});
          node.node.add_input("axes");
        }) == Floats{5, 7, -3});
  CHECK(sum(13, 1, [](auto&, auto&) {}) == Floats{9});
  CHECK(sum(13, 6, [](auto&, NodeMaker& node) { node.set("noop_with_empty_axes", 1); }) == values);
}

TEST_CASE("onnx constants: NF-ResNet's weights, standardised by the graph") {
  OnnxModel model = OnnxModel::of_image({2, 3, 3}, 18);
  model.floats("w", {1, 2, 1, 2}, {1, 3, 5, 7});
  model.floats("gain", {1, 1, 1, 1}, {2});
  model.integers("axes", {1, 2, 3});
  model.add_node("ReduceMean", {"w", "axes"}, "mean");
  model.add_node("Sub", {"w", "mean"}, "centred");
  model.add_node("Mul", {"centred", "centred"}, "squares");
  model.add_node("ReduceMean", {"squares", "axes"}, "variance");
  model.add_node("Sqrt", {"variance"}, "deviation");
  model.add_node("Div", {"centred", "deviation"}, "standard");
  model.add_node("Mul", {"standard", "gain"}, "weights");
  model.add_node("Conv", {"x", "weights"});
  const Network network = model.import();
  CHECK(kinds(network) == "convolution");
  const double step = 2 / std::sqrt(5.0);
  const std::vector<float>& weights = network.layers.at(0).weights;
  REQUIRE(weights.size() == 4);
  for (int i = 0; i < 4; ++i) CHECK(weights[i] == static_cast<float>((2 * i - 3) * step));
}

TEST_CASE("onnx constants: a batch normalization of weights") {
  OnnxModel model = OnnxModel::of_image({2, 3, 3}, 15);
  model.floats("w", {2, 2, 1, 1}, {1, 2, 3, 6});
  for (const char* name : {"scale", "shift", "mean"}) model.floats(name, {2}, {1, 10});
  model.floats("variance", {2}, {1, 1});
  NodeMaker node = model.add_node("BatchNormalization", {"w", "scale", "shift", "mean", "variance"}, "normal");
  node.set("epsilon", 0.0F);
  model.add_node("Conv", {"x", "normal"});
  SECTION("for inference") { CHECK(model.import().layers.at(0).weights == Floats{1, -70, 3, -30}); }
  SECTION("in training mode, as timm standardises weights: by their own mean") {
    node.set("training_mode", 1);
    node.node.add_output("running mean");
    node.node.add_output("running variance");
    CHECK(model.import().layers.at(0).weights == Floats{0, 0, 2, 20});
  }
  SECTION("lists of another length") {
    model.floats("short", {1});
    node.node.set_input(4, "short");
    rejects(model, {"its variance 'short' has the shape [1]", "2 channels"});
  }
}

TEST_CASE("onnx constants: operators of networks, by their reference") {
  SECTION("relu of a list") { CHECK(of_list("Relu", {1, -2}) == Floats{1, 0}); }
  SECTION("sigmoid of a number") {
    CHECK(of_list("Sigmoid", {}, {0}, 1, [](auto&, auto&) {}) == Floats{0.5F});
  }
  SECTION("a convolution") {
    OnnxModel model = constants_model();
    model.floats("image", {1, 1, 2, 2});
    model.floats("filter", {1, 1, 1, 2}, {10, 1});
    model.add_node("Conv", {"image", "filter"}, "c");
    CHECK(bias_of(model, 2) == Floats{12, 34});
  }
  SECTION("a product of matrices") {
    OnnxModel model = constants_model();
    model.floats("a", {2, 2}, {1, 2, 3, 4});
    model.floats("b", {2, 1}, {10, 1});
    model.add_node("MatMul", {"a", "b"}, "c");
    CHECK(bias_of(model, 2) == Floats{12, 34});
  }
  SECTION("what no network may do is refused here too") {
    OnnxModel model = constants_model();
    model.floats("a", {2, 2, 1, 1, 2});
    model.add_node("MaxPool", {"a"}, "c").set("kernel_shape", Dims{1, 1, 1});
    refuses_constant(model, 8, {"node 'c' (MaxPool)", "channels x rows x columns alone"});
  }
}

TEST_CASE("onnx constants: moved, chosen and repeated") {
  OnnxModel model = constants_model();
  model.floats("a", {2, 3});
  SECTION("slice, backwards and in steps") {
    model.integers("starts", {-1, 0});
    model.integers("ends", {-10, 3});
    model.integers("axes", {0, 1});
    model.integers("steps", {-1, 2});
    model.add_node("Slice", {"a", "starts", "ends", "axes", "steps"}, "c");
    CHECK(bias_of(model, 4) == Floats{4, 6, 1, 3});
  }
  SECTION("split, all outputs") {
    model.integers("parts", {1, 2});
    model.add_node("Split", {"a", "parts"}, "left").set("axis", 1).node.add_output("c");
    CHECK(bias_of(model, 4) == Floats{2, 3, 5, 6});
  }
  SECTION("split in halves") {
    model.add_node("Split", {"a"}, "first").node.add_output("c");
    CHECK(bias_of(model, 3) == Floats{4, 5, 6});
  }
  SECTION("gather rows by a table") {
    auto& indices = model.integers("indices", {1, 0, -1, 1});
    indices.clear_dims();
    for (const int extent : {2, 2}) indices.add_dims(extent);
    model.add_node("Gather", {"a", "indices"}, "c");
    CHECK(bias_of(model, 12) == Floats{4, 5, 6, 1, 2, 3, 4, 5, 6, 4, 5, 6});
  }
  SECTION("gather elements") {
    auto& indices = model.integers("indices", {0, 1, 1});
    indices.clear_dims();
    for (const int extent : {1, 3}) indices.add_dims(extent);
    model.add_node("GatherElements", {"a", "indices"}, "c");
    CHECK(bias_of(model, 3) == Floats{1, 5, 6});
  }
  SECTION("concat") {
    model.floats("b", {2, 1}, {7, 8});
    model.add_node("Concat", {"a", "b"}, "c").set("axis", -1);
    CHECK(bias_of(model, 8) == Floats{1, 2, 3, 7, 4, 5, 6, 8});
  }
  SECTION("expand") {
    model.integers("shape", {2, 1, 1});
    model.add_node("Expand", {"a", "shape"}, "c");
    CHECK(bias_of(model, 12) == Floats{1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6});
  }
  SECTION("tile") {
    model.integers("repeats", {1, 2});
    model.add_node("Tile", {"a", "repeats"}, "c");
    CHECK(bias_of(model, 12) == Floats{1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6});
  }
  SECTION("pad") {
    model.integers("pads", {0, 1, 1, 0});
    model.floats("value", {}, {9});
    model.add_node("Pad", {"a", "pads", "value"}, "c");
    CHECK(bias_of(model, 12) == Floats{9, 1, 2, 3, 9, 4, 5, 6, 9, 9, 9, 9});
  }
  SECTION("where") {
    booleans(model, "condition", {true, false, true});
    model.floats("b", {}, {0});
    model.add_node("Where", {"condition", "a", "b"}, "c");
    CHECK(bias_of(model, 6) == Floats{1, 0, 3, 4, 0, 6});
  }
  SECTION("what is no zero") {
    model.floats("sparse", {2, 2}, {0, 5, 6, 0});
    model.add_node("NonZero", {"sparse"}, "c");
    CHECK(bias_of(model, 4, false) == Floats{0, 1, 1, 0});
  }
  SECTION("transposed, flattened, with more axes and with fewer") {
    model.add_node("Transpose", {"a"}, "turned");
    model.integers("axes", {0, 3});
    model.add_node("Unsqueeze", {"turned", "axes"}, "deep");
    model.add_node("Squeeze", {"deep"}, "table");
    model.add_node("Flatten", {"table"}, "c").set("axis", 2);
    CHECK(bias_of(model, 6) == Floats{1, 4, 2, 5, 3, 6});
  }
}

TEST_CASE("onnx constants: indices, parts and shapes that cannot be") {
  OnnxModel model = constants_model();
  model.floats("a", {2, 3});
  SECTION("index") {
    model.integers("indices", {2});
    model.add_node("Gather", {"a", "indices"}, "c");
    add_layer(model, 3);
    rejects(model, {"its index is 2, its input has 2 values"});
  }
  SECTION("parts") {
    model.integers("parts", {1, 1});
    model.add_node("Split", {"a", "parts"}, "b").set("axis", 1).node.add_output("c");
    add_layer(model, 2);
    rejects(model, {"its 2 parts have 2 of 3 elements"});
  }
  SECTION("joined") {
    model.floats("b", {3, 2});
    model.add_node("Concat", {"a", "b"}, "c").set("axis", 0);
    add_layer(model, 12);
    rejects(model, {"joins constants of the shapes [2,3] and [3,2]"});
  }
  SECTION("repeated") {
    model.integers("shape", {2, 2});
    model.add_node("Expand", {"a", "shape"}, "c");
    add_layer(model, 4);
    rejects(model, {"repeats a constant of the shape [2,3] to [2,2]"});
  }
  SECTION("step of 0") {
    for (const char* name : {"starts", "axes", "steps"}) model.integers(name, {0});
    model.integers("ends", {2});
    model.add_node("Slice", {"a", "starts", "ends", "axes", "steps"}, "c");
    add_layer(model, 6);
    rejects(model, {"its step is 0"});
  }
}

TEST_CASE("onnx constants: made of a few numbers") {
  OnnxModel model = constants_model();
  SECTION("a shape full of one number") {
    model.integers("shape", {2, 2});
    auto& value =
        *model.add_node("ConstantOfShape", {"shape"}, "c").add("value", onnx::AttributeProto::TENSOR).mutable_t();
    set_floats(value, {1}, {3});
    CHECK(bias_of(model, 4) == Floats{3, 3, 3, 3});
  }
  SECTION("without a value it is 0") {
    model.integers("shape", {2});
    model.add_node("ConstantOfShape", {"shape"}, "c");
    CHECK(bias_of(model, 2) == Floats{0, 0});
  }
  SECTION("a range, downwards") {
    model.integer("start", 5);
    model.integer("end", 0);
    model.integer("step", -2);
    model.add_node("Range", {"start", "end", "step"}, "c");
    CHECK(bias_of(model, 3, false) == Floats{5, 3, 1});
  }
  SECTION("more numbers than a few bytes may ask for") {
    model.integers("shape", {1 << 20, 1 << 10});
    model.add_node("ConstantOfShape", {"shape"}, "c");
    refuses_constant(model, 1, {"[1048576,1024]", "kFoldFloor"});
  }
  SECTION("a network of one operator that makes many") {
    model.floats("pixel", {1, 1, 1, 1});
    model.floats("filter", {1, 1, 1, 1});
    model.add_node("Conv", {"pixel", "filter"}, "c").set("pads", Dims(4, 1000));
    refuses_constant(model, 1, {"node 'c' (Conv)", "[1,1,2001,2001]", "kFoldFloor"});
  }
  SECTION("numbers that a node doubles again and again") {
    model.floats("c0", {1 << 12});
    std::string last = "c0";
    for (int i = 0; i < 9; ++i) {
      const std::string next = i == 8 ? "c" : "c" + std::to_string(i + 1);
      model.add_node("Concat", {last, last}, next).set("axis", 0);
      last = next;
    }
    refuses_constant(model, 1, {"node 'c' (Concat)", "[2097152]", "kFoldFloor"});
  }
  SECTION("as many as the file holds") {
    constexpr std::int64_t kMany = (std::int64_t{1} << 20) + 1;
    auto& stored = *model.proto.mutable_graph()->add_initializer();
    stored.set_name("a");
    stored.set_data_type(onnx::TensorProto::UINT8);
    stored.add_dims(kMany);
    stored.set_raw_data(std::string(static_cast<std::size_t>(kMany), '\2'));
    model.integers("axes", {0});
    model.add_node("Mul", {"a", "a"}, "squares");
    model.add_node("ReduceSum", {"squares", "axes"}, "c");
    CHECK(bias_of(model, 1, false) == Floats{4.0F * static_cast<float>(kMany)});
  }
  SECTION("a sum of few numbers that are repeated") {
    model.integers("many", {4000, 1});
    model.integers("more", {1, 4000});
    model.floats("one", {1});
    model.add_node("Expand", {"one", "many"}, "column");
    model.add_node("Expand", {"one", "more"}, "row");
    model.add_node("Add", {"column", "row"}, "c");
    refuses_constant(model, 1, {"[4000,4000]", "kFoldFloor", "are 6 up to here"});
  }
}

TEST_CASE("onnx constants: casts") {
  const auto cast = [](float value, int to) {
    OnnxModel model = constants_model();
    model.floats("a", {1}, {value});
    model.add_node("Cast", {"a"}, "cast").set("to", to);
    model.add_node("Cast", {"cast"}, "c").set("to", 1);
    add_layer(model, 1);
    return model;
  };
  const auto bias = [&](float value, int to) { return last<Linear>(cast(value, to).import()).bias.at(0); };
  CHECK(bias(2.75F, 7) == 2);
  CHECK(bias(-2.75F, 6) == -2);
  CHECK(bias(0.5F, 9) == 1);
  CHECK(bias(2.75F, 11) == 2.75F);
  refuses(cast(300, 2), {"a number of type uint8 of 300"});
  refuses(cast(1, 17), {"ONNX's type 17"});
  rejects(cast(1e30F, 7), {"makes an integer of 1"});
}

TEST_CASE("onnx constants: a result that is none of float32") {
  OnnxModel model = constants_model();
  model.floats("zero", {1}, {0});
  model.add_node("Log", {"zero"}, "c");
  add_layer(model, 1);
  rejects(model, {"(Gemm)", "is -inf; it must be finite"});
}
