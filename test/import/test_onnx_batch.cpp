// Arithmetic on sizes where the number of images is a symbol.
#include "test/import/files.h"
#include "test/import/onnx_constants.h"
#include "test/import/onnx_faults.h"

using namespace burin;
using namespace burin_test;

namespace {

// x is [N,4,2,3]; `shape` is its shape, `N` the first number of it, as lists.
OnnxModel sizes_model() {
  OnnxModel model = OnnxModel::of_image({4, 2, 3});
  model.add_node("Shape", {"x"}, "shape");
  for (const auto& [name, index] : {std::pair("N", 0), std::pair("C", 1), std::pair("H", 2), std::pair("W", 3)}) {
    const std::string at = std::string("index of ") + name;
    model.integers(at, {index});
    model.add_node("Gather", {"shape", at}, name);
  }
  model.integers("one", {1});
  model.integers("two", {2});
  model.integers("none", {-1});
  return model;
}

// What x becomes with the values joined to a shape.
OnnxModel reshaped(OnnxModel model, const std::vector<std::string>& extents) {
  model.add_node("Concat", extents, "wanted").set("axis", 0);
  model.add_node("Reshape", {"x", "wanted"});
  return model;
}

Dims shape_of(const OnnxModel& model) { return last_shape(model.import()); }

}  // namespace

TEST_CASE("onnx batch: channel shuffle, x.view(b, g, c // g, h, w)") {
  OnnxModel model = sizes_model();
  model.add_node("Div", {"C", "two"}, "of a group");
  CHECK(shape_of(reshaped(model, {"N", "two", "of a group", "H", "W"})) == Dims{2, 2, 2, 3});
}

TEST_CASE("onnx batch: products and quotients of it") {
  OnnxModel model = sizes_model();
  SECTION("all numbers of x, by those of an image") {
    model.add_node("Size", {"x"}, "numbers");
    model.add_node("Div", {"numbers", "N"}, "of an image");
    CHECK(shape_of(reshaped(model, {"N", "of an image"})) == Dims{24});
  }
  SECTION("2 N / 2") {
    model.add_node("Mul", {"N", "two"}, "double");
    model.add_node("Div", {"double", "two"}, "again");
    CHECK(shape_of(reshaped(model, {"again", "none"})) == Dims{24});
  }
  SECTION("the product of the shape") {
    model.add_node("ReduceProd", {"shape"}, "numbers").set("keepdims", 1);
    model.integers("image", {24});
    model.add_node("Div", {"numbers", "image"}, "images");
    CHECK(shape_of(reshaped(model, {"images", "none"})) == Dims{24});
  }
  SECTION("N - 1 + 1, as real numbers and back") {
    model.add_node("Sub", {"N", "one"}, "less");
    model.add_node("Cast", {"less"}, "real").set("to", 1);
    model.add_node("Floor", {"real"}, "floor");
    model.add_node("Cast", {"floor"}, "integer").set("to", 7);
    model.add_node("Add", {"integer", "one"}, "again");
    CHECK(shape_of(reshaped(model, {"again", "none"})) == Dims{24});
  }
  SECTION("N modulo 1") {
    model.add_node("Mod", {"N", "one"}, "nothing");
    model.add_node("Add", {"nothing", "two"}, "still two");
    CHECK(shape_of(reshaped(model, {"N", "still two", "none"})) == Dims{2, 12});
  }
}

TEST_CASE("onnx batch: comparisons that hold for every number of images") {
  OnnxModel model = sizes_model();
  model.integers("zero", {0});
  const auto chooses = [&](const std::string& op, const std::string& a, const std::string& b) {
    OnnxModel made = model;
    made.add_node(op, {a, b}, "condition");
    made.add_node("Where", {"condition", "two", "none"}, "chosen");
    made.add_node("Where", {"condition", "none", "two"}, "other");
    return shape_of(reshaped(made, {"N", "chosen", "other"}))[0] == 2;
  };
  CHECK_FALSE(chooses("Equal", "N", "none"));
  CHECK(chooses("Equal", "N", "N"));
  CHECK(chooses("Greater", "N", "zero"));
  CHECK(chooses("GreaterOrEqual", "N", "one"));
  CHECK(chooses("Less", "zero", "N"));
  CHECK_FALSE(chooses("Less", "N", "one"));
  CHECK_FALSE(chooses("LessOrEqual", "N", "zero"));
  // As exporters write it for expand(-1, ...): where the shape says -1, the other one.
  OnnxModel expanded = model;
  expanded.add_node("Equal", {"shape", "none"}, "is open");
  expanded.add_node("Where", {"is open", "one", "shape"}, "wanted");
  expanded.add_node("Reshape", {"x", "wanted"});
  CHECK(shape_of(expanded) == Dims{4, 2, 3});
  OnnxModel extremes = model;
  extremes.add_node("Max", {"N", "one"}, "most");
  extremes.add_node("Min", {"most", "N", "N"}, "least");
  CHECK(shape_of(reshaped(extremes, {"least", "none"})) == Dims{24});
}

TEST_CASE("onnx batch: what depends on it otherwise is refused, by name") {
  const auto refused = [](const std::string& op, const std::string& a, const std::string& b,
                          std::initializer_list<std::string_view> parts) {
    OnnxModel model = sizes_model();
    model.add_node(op, {a, b}, "result");
    refuses(reshaped(model, {"result", "none"}), parts);
  };
  refused("Mul", "N", "N", {"node 'result' (Mul)", "computes with N and N", "fixed batch"});
  refused("Div", "N", "two", {"computes with N and 2"});
  refused("Div", "two", "N", {"computes with 2 and N"});
  refused("Mod", "N", "two", {"computes with N and 2"});
  refused("Max", "N", "two", {"computes with N and 2"});
  refused("Equal", "N", "one", {"node 'result' (Equal)", "computes with N and 1"});
  OnnxModel root = sizes_model();
  root.add_node("Cast", {"N"}, "real").set("to", 1);
  root.add_node("Sqrt", {"real"}, "root");
  root.add_node("Cast", {"root"}, "integer").set("to", 7);
  refuses(reshaped(root, {"integer", "none"}), {"node 'root' (Sqrt)", "computes with N,"});
}

TEST_CASE("onnx batch: a reshape to other numbers of images") {
  OnnxModel model = sizes_model();
  model.add_node("Mul", {"N", "two"}, "double");
  refuses(reshaped(model, {"double", "none"}), {"the first axis of its shape is 2 * N", "must stay the batch"});
  refuses(reshaped(model, {"none", "N"}), {"the number of images as axis 1"});
}

TEST_CASE("onnx batch: no weights depend on it") {
  OnnxModel model = sizes_model();
  model.add_node("Cast", {"N"}, "real").set("to", 1);
  model.add_node("Mul", {"x", "real"});
  refuses(model, {"'real' is computed from the number of images"});
}

TEST_CASE("onnx sizes: Shape of a constant, and of no axes") {
  OnnxModel model = OnnxModel::of_image({4, 2, 3});
  model.floats("like", {9, 2, 12});
  model.add_node("Shape", {"like"}, "shape");
  model.integers("starts", {1});
  model.integers("ends", {3});
  model.add_node("Slice", {"shape", "starts", "ends"}, "tail");
  model.add_node("Shape", {"x"}, "batch").set("end", 1);
  model.add_node("Concat", {"batch", "tail"}, "wanted").set("axis", 0);
  model.add_node("Reshape", {"x", "wanted"});
  CHECK(shape_of(model) == Dims{2, 12});
}
