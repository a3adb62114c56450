// Resize and Upsample: expected values are those of the operator's definition, worked out by hand.
#include <functional>
#include <numeric>

#include "compiler/network/reference_network.h"
#include "ir/limits.h"
#include "test/catch.h"
#include "test/import/onnx_faults.h"

using namespace burin;
using namespace burin_test;

namespace {

using Dims = std::vector<std::int64_t>;
using Doubles = std::vector<double>;

// A row of 0, 1, 2 ... through a Resize to `cols` columns.
class RowModel {
 public:
  explicit RowModel(int in, int opset = 19) : model_(OnnxModel::of_image({1, 1, in}, opset)), in_(in) {}
  RowModel& sizes(std::int64_t cols) {
    model_.integers("sizes", {1, 1, 1, cols});
    inputs_ = {"x", "", "", "sizes"};
    return *this;
  }
  RowModel& scale(float scale) {
    model_.floats("scales", {4}, {1, 1, 1, scale});
    inputs_ = {"x", "", "scales"};
    return *this;
  }
  template <typename Value>
  RowModel& set(const std::string& attribute, Value value) {
    changes_.emplace_back([=](NodeMaker& node) { node.set(attribute, value); });
    return *this;
  }
  OnnxModel made() const {
    OnnxModel model = model_;
    NodeMaker node = model.add_node("Resize", inputs_);
    for (const auto& change : changes_) change(node);
    return model;
  }
  Doubles values() const {
    std::vector<float> row(static_cast<std::size_t>(in_));
    std::iota(row.begin(), row.end(), 0.0F);
    return run_reference(made().import(), 1, {row})[0];
  }

 private:
  OnnxModel model_;
  int in_;
  std::vector<std::string> inputs_;
  std::vector<std::function<void(NodeMaker&)>> changes_;
};

void check_near(const Doubles& values, const Doubles& expected) {
  REQUIRE(values.size() == expected.size());
  for (std::size_t i = 0; i < values.size(); ++i) CHECK(values[i] == Approx(expected[i]).margin(1e-6));
}

}  // namespace

TEST_CASE("onnx resize: the nearest pixel, of each kind") {
  // Half pixels of a row of 4 in 8 columns: -0.25, 0.25, 0.75 ...; in 2: 0.5, 2.5.
  CHECK(RowModel(4).sizes(8).values() == Doubles{0, 0, 1, 1, 2, 2, 3, 3});
  const auto half = [](const char* mode) { return RowModel(4).sizes(2).set("nearest_mode", mode).values(); };
  CHECK(half("round_prefer_floor") == Doubles{0, 2});
  CHECK(half("round_prefer_ceil") == Doubles{1, 3});
  CHECK(half("floor") == Doubles{0, 2});
  CHECK(half("ceil") == Doubles{1, 3});
}

TEST_CASE("onnx resize: a scale of a third is one third in float, as elsewhere") {
  CHECK(RowModel(9)
            .scale(1 / 3.0F)
            .set("coordinate_transformation_mode", "asymmetric")
            .set("nearest_mode", "floor")
            .values() == Doubles{0, 3, 6});
}

TEST_CASE("onnx resize: places of each rule") {
  const auto linear = [](const char* rule, std::int64_t cols) {
    return RowModel(4).sizes(cols).set("mode", "linear").set("coordinate_transformation_mode", rule).values();
  };
  check_near(linear("half_pixel", 8), {0, 0.25, 0.75, 1.25, 1.75, 2.25, 2.75, 3});
  check_near(linear("half_pixel_symmetric", 8), {0, 0.25, 0.75, 1.25, 1.75, 2.25, 2.75, 3});
  check_near(linear("asymmetric", 8), {0, 0.5, 1, 1.5, 2, 2.5, 3, 3});
  check_near(linear("align_corners", 7), {0, 0.5, 1, 1.5, 2, 2.5, 3});
  check_near(linear("align_corners", 1), {0});
  check_near(linear("pytorch_half_pixel", 1), {0});
  check_near(linear("half_pixel", 1), {1.5});
  check_near(linear("pytorch_half_pixel", 2), {0.5, 2.5});
}

TEST_CASE("onnx resize: a cubic rule of -0.5 keeps what is linear, but for its edges") {
  const Doubles all = RowModel(8).sizes(16).set("mode", "cubic").set("cubic_coeff_a", -0.5F).values();
  for (std::size_t i = 4; i < 12; ++i) CHECK(all[i] == Approx(0.5 * static_cast<double>(i) - 0.25).margin(1e-6));
  const Doubles excluded =
      RowModel(8).sizes(16).set("mode", "cubic").set("cubic_coeff_a", -0.5F).set("exclude_outside", 1).values();
  CHECK(excluded[6] == Approx(2.75));
  CHECK(excluded[0] != Approx(all[0]).margin(1e-3));
  CHECK(RowModel(8).sizes(16).set("mode", "cubic").values()[6] == Approx(2.703125));  // of -0.75
}

TEST_CASE("onnx resize: antialias makes an output of all that it covers") {
  const auto row = [](int antialias) {
    return RowModel(8).sizes(2).set("mode", "linear").set("antialias", antialias).values();
  };
  check_near(row(0), {1.5, 5.5});
  // Weights 1/8, 3/8, 5/8, 7/8, 7/8 ... around 1.5, with the edge's pixel for those outside.
  check_near(row(1), {(7.0 / 8 + 2 * 7.0 / 8 + 3 * 5.0 / 8 + 4 * 3.0 / 8 + 5 * 1.0 / 8) / 4,
                      (2 * 1.0 / 8 + 3 * 3.0 / 8 + 4 * 5.0 / 8 + 5 * 7.0 / 8 + 6 * 7.0 / 8 + 7 * 9.0 / 8) / 4});
}

TEST_CASE("onnx resize: a region, and what lies outside") {
  OnnxModel model = OnnxModel::of_image({1, 1, 5}, 19);
  model.floats("roi", {8}, {0, 0, 0, 0.5F, 1, 1, 1, 1.25F});
  model.integers("sizes", {1, 1, 1, 4});
  model.add_node("Resize", {"x", "roi", "", "sizes"})
      .set("mode", "linear")
      .set("coordinate_transformation_mode", "tf_crop_and_resize")
      .set("extrapolation_value", 9.0F);
  const std::vector<float> row = {0, 1, 2, 3, 4};
  check_near(run_reference(model.import(), 1, {row})[0], {2, 3, 4, 9});
}

TEST_CASE("onnx resize: sizes that keep the aspect, of some axes") {
  const auto shape = [](const char* policy) {
    OnnxModel model = OnnxModel::of_image({3, 8, 10}, 18);
    model.integers("sizes", {4, 20});
    model.add_node("Resize", {"x", "", "", "sizes"}).set("axes", Dims{2, -1}).set("keep_aspect_ratio_policy", policy);
    return last_shape(model.import());
  };
  CHECK(shape("stretch") == Dims{3, 4, 20});
  CHECK(shape("not_larger") == Dims{3, 4, 5});
  CHECK(shape("not_smaller") == Dims{3, 16, 20});
}

TEST_CASE("onnx resize: sizes computed from a shape, as exporters leave them") {
  OnnxModel model = OnnxModel::of_image({3, 8, 10}, 13);
  model.proto.mutable_graph()
      ->mutable_input(0)
      ->mutable_type()
      ->mutable_tensor_type()
      ->mutable_shape()
      ->mutable_dim(0)
      ->set_dim_param("N");
  model.integers("zero", {0});
  model.integers("two", {2});
  model.integers("extents", {16, 20});
  model.add_node("Shape", {"x"}, "shape");
  model.add_node("Slice", {"shape", "zero", "two", "zero"}, "first");
  model.add_node("Concat", {"first", "extents"}, "sizes").set("axis", 0);
  model.add_node("Resize", {"x", "", "", "sizes"});
  CHECK(kinds(model.import()) == "resample");
  CHECK(last_shape(model.import()) == Dims{3, 16, 20});
}

TEST_CASE("onnx resize: of opset 10, and Upsample") {
  const auto values = [](const std::string& op, int opset, float scale) {
    OnnxModel model = OnnxModel::of_image({1, 1, 4}, opset);
    model.floats("scales", {4}, {1, 1, 1, scale});
    NodeMaker node =
        model.add_node(op, opset < 9 ? std::vector<std::string>{"x"} : std::vector<std::string>{"x", "scales"});
    if (opset < 9) {
      auto& scales = node.add("scales", onnx::AttributeProto::FLOATS);
      for (const float each : {1.0F, 1.0F, 1.0F, scale}) scales.add_floats(each);
    }
    const std::vector<float> row = {0, 1, 2, 3};
    return run_reference(model.import(), 1, {row})[0];
  };
  CHECK(values("Resize", 10, 2) == Doubles{0, 0, 1, 1, 2, 2, 3, 3});
  CHECK(values("Resize", 10, 0.6F) == Doubles{0, 2});  // the upper one where the image shrinks
  CHECK(values("Upsample", 9, 1.5F) == Doubles{0, 0, 1, 2, 2, 3});
  CHECK(values("Upsample", 7, 2) == Doubles{0, 0, 1, 1, 2, 2, 3, 3});
}

TEST_CASE("onnx resize: what is refused") {
  const auto scaled = [](const std::vector<float>& scales) {
    OnnxModel model = OnnxModel::of_image({3, 8, 8}, 19);
    model.floats("scales", {static_cast<std::int64_t>(scales.size())}, scales);
    model.add_node("Resize", {"x", "", "scales"});
    return model;
  };
  refuses(scaled({1, 2, 2, 2}), {"it resizes the channels; burin resizes rows and columns"});
  refuses(scaled({2, 1, 2, 2}), {"it resizes the batch"});
  rejects(scaled({1, 1, -1, 2}), {"its scale is -1"});
  refuses(scaled({1, 1, 1e-9F, 2}), {"it makes an axis of 0 elements"});
  refuses(scaled({1, 1, 1e9F, 2}), {"it makes an axis of"});
  rejects(scaled({1, 2}), {"it has 2 scales for 4 axes"});
  refuses(RowModel(4).sizes(8).set("mode", "lanczos").made(),
          {"'mode' is 'lanczos'; burin knows nearest, linear, cubic"});
  refuses(RowModel(4).sizes(8).set("nearest_mode", "by_direction").made(), {"'nearest_mode' is 'by_direction'"});
  refuses(RowModel(20000).sizes(2).set("mode", "cubic").set("antialias", 1).made(), {"(kMaxTaps, kMaxTapTable)"});
  refuses(RowModel(4).scale(0.8F).set("coordinate_transformation_mode", "align_corners").made(),
          {"it aligns the corners of 3.2 elements", "export it with sizes"});
  CHECK(RowModel(7).scale(20.0F / 7).set("coordinate_transformation_mode", "align_corners").values().size() == 20);
  OnnxModel neither = OnnxModel::of_image({3, 8, 8}, 19);
  neither.add_node("Resize", {"x"});
  rejects(neither, {"neither scales nor sizes"});
}
