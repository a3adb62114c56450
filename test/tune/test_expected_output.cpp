#include "compiler/tune/expected_output.h"

#include <cmath>
#include <limits>

#include "compiler/reference.h"
#include "test/catch.h"
#include "test/ir/random_layers.h"

using namespace burin;

namespace {

constexpr int kBatch = 20;  // more than are compared
constexpr int kChannels = 3, kExtent = 4, kImage = kChannels * kExtent * kExtent;

ConvLayer sample_layer() {
  ConvShape shape;
  shape.in_channels = shape.out_channels = kChannels;
  shape.kernel_h = shape.kernel_w = 3;
  shape.pad = {1, 1, 1, 1};
  shape.in_h = shape.in_w = kExtent;
  shape.epilogue = {.bias = true, .residual = true, .function = function_of(Activation::relu)};
  return burin_test::make_layer("layer", shape, 0.5);
}

struct OutputFixture {
  ConvLayer layer = sample_layer();
  SparsePattern pattern = analyse(layer);
  ExpectedOutput expected{layer, pattern, kBatch};
  std::vector<float> output;

  OutputFixture() {
    for (const double value : reference_convolution(layer, kBatch, expected.input(), expected.residual())) {
      output.push_back(static_cast<float>(value));
    }
  }
};

}  // namespace

TEST_CASE("expected output: what is right is right") {
  OutputFixture f;
  CHECK(f.expected.elements() == kBatch * kImage);
  CHECK(f.expected.residual().size() == f.output.size());
  const ExpectedOutput::Verdict verdict = f.expected.judge(f.output);
  CHECK(verdict.fault == "");
  CHECK(verdict.error >= 0);
  CHECK(verdict.error <= 1);
}

TEST_CASE("expected output: images have inputs of their own") {
  const OutputFixture f;
  const std::span<const float> input = f.expected.input();
  CHECK_FALSE(std::equal(input.begin(), input.begin() + kImage, input.begin() + kImage));
}

TEST_CASE("expected output: the first and the last image are compared, and the place is the batch's") {
  for (const int image : {0, kBatch - 1}) {
    OutputFixture f;
    f.output[static_cast<std::size_t>(image * kImage + kExtent + 2)] += 1;
    CHECK_THAT(f.expected.judge(f.output).fault,
               burin_test::StartsWith("wrong: image " + std::to_string(image) + ", channel 0, row 1, col 2: "));
  }
}

TEST_CASE("expected output: an element that was not written is found in every image") {
  for (int image = 0; image < kBatch; ++image) {
    OutputFixture f;
    f.output[static_cast<std::size_t>(image * kImage + 1)] = std::numeric_limits<float>::quiet_NaN();
    CHECK_THAT(f.expected.judge(f.output).fault,
               burin_test::StartsWith("wrong: image " + std::to_string(image) + ", channel 0, row 0, col 1: "));
  }
}

TEST_CASE("expected output: biases in halves are allowed to what has them so") {
  ConvLayer layer = sample_layer();
  layer.shape.epilogue = {.bias = true};
  for (float& bias : layer.bias) bias = 1 + 0x1p-12F;
  const SparsePattern pattern = analyse(layer);
  ExpectedOutput expected(layer, pattern, 1);
  ConvLayer with_halves = layer;
  with_halves.bias = rounded(ElementType::f16, layer.bias);
  std::vector<float> output;
  for (const double value : reference_convolution(with_halves, 1, expected.input(), {})) {
    output.push_back(static_cast<float>(value));
  }
  CHECK_THAT(expected.judge(output).fault, burin_test::StartsWith("wrong: image 0"));
  CHECK(expected.judge(output, {.biases = ElementType::f16}).fault == "");
  for (float& value : output) value += 0x1p-10F;
  CHECK_THAT(expected.judge(output, {.biases = ElementType::f16}).fault, burin_test::StartsWith("wrong: image 0"));
}

TEST_CASE("expected output: what TF32 takes of inputs and weights is allowed to kernels that round to it") {
  const ConvLayer layer = sample_layer();
  const SparsePattern pattern = analyse(layer);
  ExpectedOutput expected(layer, pattern, 1, Precision::fp32, FactorType::tf32);
  ConvLayer rounded_layer = layer;
  rounded_layer.weights = rounded(FactorType::tf32, layer.weights);
  const std::vector<double> made =
      reference_convolution(rounded_layer, 1, rounded(FactorType::tf32, expected.input()), expected.residual());
  const std::vector<float> output(made.begin(), made.end());
  CHECK(expected.judge(output, {.weights = FactorType::tf32, .inputs = FactorType::tf32}).fault == "");
  CHECK_THAT(expected.judge(output).fault, burin_test::StartsWith("wrong: image 0, "));
}

TEST_CASE("expected output: some inputs are NaN and infinite, and outputs like them are right") {
  ConvLayer layer = sample_layer();
  layer.shape.epilogue = {.bias = true};
  ExpectedOutput expected(layer, analyse(layer), kBatch, Precision::fp32, FactorType::f32, {},
                          ExpectedOutput::Inputs::some_spoilt);
  CHECK(std::ranges::any_of(expected.input(), [](float value) { return std::isinf(value); }));
  CHECK(std::ranges::any_of(expected.input(), [](float value) { return std::isfinite(value); }));
  const std::vector<double> right = reference_convolution(layer, kBatch, expected.input(), {});
  std::vector<float> output(right.begin(), right.end());
  CHECK(expected.judge(output).fault == "");
  const auto infinite = std::ranges::find_if(output, [](float value) { return std::isinf(value); });
  REQUIRE(infinite != output.end());
  *infinite = 0;
  CHECK_THAT(expected.judge(output).fault, burin_test::StartsWith("wrong: image "));

  // What multiplies zeros as well makes NaN of more outputs, and may; what skips them may not.
  for (float& weight : layer.weights) weight = 0;
  layer.weights.front() = 1;
  ExpectedOutput of_one_weight(layer, analyse(layer), kBatch, Precision::fp32, FactorType::f32, {},
                               ExpectedOutput::Inputs::some_spoilt);
  ConvLayer dense = layer;
  for (float& weight : dense.weights) weight = weight == 0 ? 0x1p-60F : weight;
  std::vector<float> multiplied;
  const std::vector<double> by_nonzeros = reference_convolution(layer, kBatch, of_one_weight.input(), {});
  const std::vector<double> by_all = reference_convolution(dense, kBatch, of_one_weight.input(), {});
  for (std::size_t i = 0; i < by_all.size(); ++i) {
    multiplied.push_back(static_cast<float>(std::isfinite(by_all[i]) ? by_nonzeros[i] : NAN));
  }
  CHECK(of_one_weight.judge(multiplied, {.reach = NonFiniteReach::window}).fault == "");
  CHECK_THAT(of_one_weight.judge(multiplied).fault, burin_test::StartsWith("wrong: image "));
}

TEST_CASE("expected output: one image") {
  const ConvLayer layer = sample_layer();
  ExpectedOutput expected(layer, analyse(layer), 1);
  const std::vector<float> zeros(kImage, 0.0F);
  CHECK(expected.judge(zeros).fault != "");
}
