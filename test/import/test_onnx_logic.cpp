// Comparisons, logic and choices of activations: what is read, and what is refused.
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

constexpr float kMost = std::numeric_limits<float>::max();

// Two images, x and z, of which a comparison is cast to numbers.
OnnxModel compared(const std::string& op, const Dims& first = {4, 3, 5}, const Dims& second = {4, 3, 5}) {
  OnnxModel model = OnnxModel::of_image(first, 21);
  Dims dims = {kSymbolic};
  dims.insert(dims.end(), second.begin(), second.end());
  model.input("z", dims);
  model.add_node(op, {"x", "z"}, "truth");
  model.add_node("Cast", {"truth"}).set("to", onnx::TensorProto::FLOAT);
  return model;
}

// x with a number, on the left where `swapped`.
Elementwise with_a_number(const std::string& op, float number, bool swapped) {
  OnnxModel model = OnnxModel::of_image({4, 3, 5}, 21);
  model.floats("c", {}, {number});
  model.add_node(op, swapped ? std::vector<std::string>{"c", "x"} : std::vector<std::string>{"x", "c"}, "truth");
  model.add_node("Cast", {"truth"}).set("to", onnx::TensorProto::FLOAT);
  return std::get<Elementwise>(model.import().operators[0].kind);
}

// Where(x > z, a, b) with what is given for a and b.
OnnxModel chosen(const std::string& yes, const std::string& no) {
  OnnxModel model = OnnxModel::of_image({4, 3, 5}, 21);
  model.input("z", {kSymbolic, 4, 3, 5});
  model.floats("half", {}, {0.5F});
  model.floats("minus", {1}, {-std::numeric_limits<float>::infinity()});
  model.floats("by_channel", {4, 1, 1});
  model.add_node("Greater", {"x", "z"}, "truth");
  model.add_node("Where", {"truth", yes, no});
  return model;
}

const Combine& combine_at(const Network& network, std::size_t i) {
  return std::get<Combine>(network.operators[i].kind);
}

}  // namespace

TEST_CASE("onnx logic: comparisons of two activations") {
  const std::tuple<const char*, Combination, bool> all[] = {{"Equal", Combination::equal, false},
                                                            {"Less", Combination::less, false},
                                                            {"LessOrEqual", Combination::less_or_equal, false},
                                                            {"Greater", Combination::less, true},
                                                            {"GreaterOrEqual", Combination::less_or_equal, true}};
  for (const auto& [op, combination, swapped] : all) {
    INFO(op);
    const Network network = compared(op).import();
    CHECK(kinds(network) == "combine identity");
    CHECK(combine_at(network, 0).combination == combination);
    CHECK(combine_at(network, 0).swapped == swapped);
    // One that repeats values comes second, whichever it was.
    const Network turned = compared(op, {1, 1, 5}, {4, 3, 5}).import();
    CHECK(combine_at(turned, 0).swapped != swapped);
  }
  const Network both = compared("Less", {4, 1, 5}, {4, 3, 1}).import();
  CHECK(kinds(both) == "pick combine identity");
  CHECK(last_shape(both) == Dims{4, 3, 5});
  refuses(compared("Less", {4, 3, 5}, {4, 2, 5}), {"4x3x5 and 4x2x5", "do not fit each other"});
}

TEST_CASE("onnx logic: comparisons with a number are functions of the other operand") {
  const float above = std::nextafter(2.0F, 3.0F), below = std::nextafter(2.0F, 1.0F);
  const auto ends = [](const Elementwise& op) {
    CHECK(op.function == ElementFunction::within);
    return std::pair(op.alpha, op.beta);
  };
  for (const bool swapped : {false, true}) {
    CHECK(ends(with_a_number("Equal", 2, swapped)) == std::pair(2.0F, 2.0F));
    CHECK(ends(with_a_number(swapped ? "Greater" : "Less", 2, swapped)) == std::pair(-kMost, below));
    CHECK(ends(with_a_number(swapped ? "GreaterOrEqual" : "LessOrEqual", 2, swapped)) == std::pair(-kMost, 2.0F));
    CHECK(ends(with_a_number(swapped ? "Less" : "Greater", 2, swapped)) == std::pair(above, kMost));
    CHECK(ends(with_a_number(swapped ? "LessOrEqual" : "GreaterOrEqual", 2, swapped)) == std::pair(2.0F, kMost));
  }
}

TEST_CASE("onnx logic: booleans are numbers, and logic is arithmetic") {
  OnnxModel model = OnnxModel::of_image({4, 3, 5}, 21);
  model.floats("zero", {}, {0});
  model.add_node("Greater", {"x", "zero"}, "a");
  model.add_node("Less", {"x", "zero"}, "b");
  model.add_node("And", {"a", "b"}, "and");
  model.add_node("Or", {"and", "b"}, "or");
  model.add_node("Xor", {"or", "a"}, "xor");
  model.add_node("Not", {"xor"}, "not");
  model.integers("shape", {0, -1});
  model.add_node("Reshape", {"not", "shape"}, "flat");
  OnnxModel whole = model;
  whole.add_node("Cast", {"flat"}).set("to", onnx::TensorProto::FLOAT);
  const Network network = whole.import();
  CHECK(kinds(network) == "elementwise elementwise combine combine combine elementwise reshape identity");
  CHECK(combine_at(network, 2).combination == Combination::multiply);
  CHECK(combine_at(network, 3).combination == Combination::larger);
  CHECK(combine_at(network, 4).then->function == ElementFunction::absolute);
  // An output must be of numbers, and so must what others compute with.
  OnnxModel ends = model;
  ends.add_node("Identity", {"flat"});
  expect_error(ErrorKind::unsupported, {"output 'y' is of booleans", "Cast to FLOAT"}, [&] { ends.import(); });
  OnnxModel sum = model;
  sum.add_node("Relu", {"flat"});
  refuses(sum, {"'flat' is of booleans"});
  OnnxModel known = OnnxModel::of_image({4, 3, 5}, 21);  // what is folded is of booleans as well
  known.floats("c", {5}, {1, std::nanf(""), 3, std::nanf(""), 5});
  known.floats("half", {}, {0.5F});
  known.add_node("IsNaN", {"c"}, "nan");
  known.add_node("Not", {"nan"}, "there");
  known.add_node("Where", {"there", "x", "half"});
  CHECK(last<Combine>(known.import()).constant->values == std::vector<float>{1, 0, 1, 0, 1});
  OnnxModel back = OnnxModel::of_image({4, 3, 5}, 21);
  back.add_node("Cast", {"x"}).set("to", onnx::TensorProto::BOOL);
  expect_error(ErrorKind::unsupported, {"of booleans"}, [&] { back.import(); });
}

TEST_CASE("onnx logic: the largest float is a number like others") {
  for (const char* op : {"LessOrEqual", "Less", "GreaterOrEqual", "Greater", "Equal"}) {
    for (const float end : {kMost, -kMost}) {
      INFO(op << " " << end);
      OnnxModel model = OnnxModel::of_image({4, 3, 5}, 21);
      model.floats("end", {}, {end});
      model.add_node(op, {"x", "end"}, "truth");
      model.add_node("Cast", {"truth"}).set("to", onnx::TensorProto::FLOAT);
      const Network network = model.import();
      CHECK(combine_at(network, 0).constant->values == std::vector<float>{end});
    }
  }
  // Nor is it what infinities are cut to.
  OnnxModel larger = OnnxModel::of_image({4, 3, 5}, 21);
  larger.floats("three", {}, {3});
  larger.add_node("Max", {"x", "three"});
  CHECK(std::isinf(last<Elementwise>(larger.import()).beta));
}

TEST_CASE("onnx logic: Where takes one number in one step, and two tensors as a sum of parts") {
  const Network number = chosen("x", "half").import();
  CHECK(kinds(number) == "combine combine");
  CHECK(combine_at(number, 1).combination == Combination::keep);
  CHECK(combine_at(number, 1).otherwise == 0.5F);
  const Network first = chosen("minus", "z").import();
  CHECK(combine_at(first, 1).combination == Combination::drop);
  CHECK(std::isinf(combine_at(first, 1).otherwise));
  CHECK(kinds(chosen("x", "z").import()) == "combine combine combine combine");
  const Network constants = chosen("half", "minus").import();
  CHECK(combine_at(constants, 1).swapped);
  CHECK(combine_at(constants, 1).constant->values == std::vector<float>{0.5F});
  CHECK(kinds(chosen("by_channel", "z").import()) == "combine combine combine combine");
  OnnxModel masked = OnnxModel::of_image({4, 3, 5}, 21);
  masked.floats("half", {}, {0.5F});
  onnx::TensorProto& mask = masked.integers("mask", {});
  mask.set_data_type(onnx::TensorProto::BOOL);
  mask.set_dims(0, 5);
  for (const int truth : {1, 0, 1, 1, 0}) mask.add_int32_data(truth);
  masked.add_node("Where", {"mask", "x", "half"});
  CHECK(last<Combine>(masked.import()).constant->values == std::vector<float>{1, 0, 1, 1, 0});
}

TEST_CASE("onnx logic: CastLike of activations changes nothing, and of constants makes real numbers") {
  OnnxModel model = OnnxModel::of_image({4, 3, 5}, 21);
  model.integer("two", 2);
  model.add_node("CastLike", {"two", "x"}, "real");
  model.add_node("Mul", {"x", "real"}, "twice");
  model.add_node("CastLike", {"twice", "x"});
  const Network network = model.import();
  CHECK(kinds(network) == "channel_affine identity");
  OnnxModel whole = OnnxModel::of_image({4, 3, 5}, 21);
  whole.integer("two", 2);
  whole.add_node("CastLike", {"x", "two"});
  refuses(whole, {"casts an activation to integers"});
}

TEST_CASE("onnx logic: what is no number, and what is infinite") {
  const auto of = [](const char* op, int below, int above) {
    OnnxModel model = OnnxModel::of_image({5}, 20);
    NodeMaker node = model.add_node(op, {"x"}, "truth");
    if (op == std::string("IsInf")) node.set("detect_negative", below).set("detect_positive", above);
    model.add_node("Cast", {"truth"}).set("to", onnx::TensorProto::FLOAT);
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    const std::vector<float> image = {-kInfinity, -2, std::nanf(""), kMost, kInfinity};
    return run_reference(model.import(), 1, {image})[0];
  };
  using Truths = std::vector<double>;
  CHECK(of("IsNaN", 0, 0) == Truths{0, 0, 1, 0, 0});
  CHECK(of("IsInf", 1, 1) == Truths{1, 0, 0, 0, 1});
  CHECK(of("IsInf", 1, 0) == Truths{1, 0, 0, 0, 0});
  CHECK(of("IsInf", 0, 1) == Truths{0, 0, 0, 0, 1});
  CHECK(of("IsInf", 0, 0) == Truths{0, 0, 0, 0, 0});
  OnnxModel output = OnnxModel::of_image({5}, 20);
  output.add_node("IsNaN", {"x"});
  expect_error(ErrorKind::unsupported, {"'y' is of booleans"}, [&] { output.import(); });
}
