#include <cmath>
#include <limits>
#include <random>

#include "compiler/reference.h"
#include "ir/element_type.h"
#include "test/catch.h"
#include "test/ir/random_layers.h"

using namespace burin;

namespace {

// The definition of a convolution, one output at a time, with every weight.
double direct_output(const ConvLayer& layer, const std::vector<float>& input, const std::vector<float>& residual, int n,
                     int k, int y, int x) {
  const ConvShape& s = layer.shape;
  double sum = 0;
  for (int c = 0; c < s.in_channels / s.groups; ++c) {
    const int channel = k / (s.out_channels / s.groups) * (s.in_channels / s.groups) + c;
    for (int r = 0; r < s.kernel_h; ++r) {
      for (int q = 0; q < s.kernel_w; ++q) {
        const int row = y * s.stride_h - s.pad.top + r * s.dilation_h;
        const int col = x * s.stride_w - s.pad.left + q * s.dilation_w;
        if (row < 0 || row >= s.in_h || col < 0 || col >= s.in_w) continue;
        const std::size_t at = ((static_cast<std::size_t>(n) * s.in_channels + channel) * s.in_h + row) * s.in_w + col;
        sum += static_cast<double>(layer.weight(k, c, r, q)) * input[at];
      }
    }
  }
  if (s.epilogue.bias) sum += layer.bias[k];
  if (s.epilogue.residual) {
    sum += residual[((static_cast<std::size_t>(n) * s.out_channels + k) * s.out_h() + y) * s.out_w() + x];
  }
  if (!s.epilogue.function) return sum;
  switch (s.epilogue.function->function) {
    case ElementFunction::relu:
      return sum > 0 ? sum : 0;
    case ElementFunction::clip:
      return sum < 0 ? 0 : sum > 6 ? 6 : sum;
    case ElementFunction::leaky_relu:
      return sum > 0 ? sum : static_cast<double>(s.epilogue.function->alpha) * sum;
    case ElementFunction::sigmoid:
      return 1.0 / (1.0 + std::exp(-sum));
    case ElementFunction::silu:
      return sum * (1.0 / (1.0 + std::exp(-sum)));
    default:
      return std::numeric_limits<double>::quiet_NaN();
  }
}

std::vector<double> direct_convolution(const ConvLayer& layer, int batch, const std::vector<float>& input,
                                       const std::vector<float>& residual) {
  std::vector<double> result;
  for (int n = 0; n < batch; ++n)
    for (int k = 0; k < layer.shape.out_channels; ++k)
      for (int y = 0; y < layer.shape.out_h(); ++y)
        for (int x = 0; x < layer.shape.out_w(); ++x)
          result.push_back(direct_output(layer, input, residual, n, k, y, x));
  return result;
}

struct Case {
  ConvLayer layer;
  int batch = 1;
  std::vector<float> input, residual;
};

Case make_case(const ConvShape& shape, int batch, double density, std::uint64_t seed) {
  Case c;
  c.layer.name = "test";
  c.layer.shape = shape;
  c.batch = batch;
  c.layer.weights = random_tensor(shape.weight_elements(), seed);
  const std::vector<float> keep = random_tensor(shape.weight_elements(), seed + 1);
  for (std::size_t i = 0; i < keep.size(); ++i) {
    if ((keep[i] + 1) / 2 > density) c.layer.weights[i] = 0;
  }
  if (shape.epilogue.bias) c.layer.bias = random_tensor(shape.out_channels, seed + 2);
  c.input = random_tensor(batch * shape.input_elements(), seed + 3);
  if (shape.epilogue.residual) c.residual = random_tensor(batch * shape.output_elements(), seed + 4);
  return c;
}

void check_against_direct(const Case& c) {
  REQUIRE(verify(c.layer).empty());
  const std::vector<double> expected = direct_convolution(c.layer, c.batch, c.input, c.residual);
  const std::vector<double> result = reference_convolution(c.layer, c.batch, c.input, c.residual);
  REQUIRE(result.size() == expected.size());
  double worst = 0;
  for (std::size_t i = 0; i < result.size(); ++i) worst = std::max(worst, std::abs(result[i] - expected[i]));
  CHECK(worst < 1e-12);  // sums of at most some hundred terms up to 1, in another order
}

// Any legal shape that is small enough for the direct form.
ConvShape random_shape(std::mt19937& engine) {
  const auto draw = [&](int low, int high) { return low + static_cast<int>(engine() % (high - low + 1)); };
  for (;;) {
    ConvShape shape;
    shape.groups = draw(0, 2) == 0 ? draw(2, 4) : 1;
    shape.in_channels = shape.groups * draw(1, 5);
    shape.out_channels = draw(0, 3) == 0 ? shape.in_channels : shape.groups * draw(1, 5);
    if (draw(0, 5) == 0) shape.groups = shape.out_channels = shape.in_channels;  // depthwise
    shape.kernel_h = draw(1, 5);
    shape.kernel_w = draw(1, 5);
    shape.stride_h = draw(1, 3);
    shape.stride_w = draw(1, 3);
    shape.dilation_h = draw(1, 3);
    shape.dilation_w = draw(1, 3);
    shape.pad = {.top = draw(0, 6), .bottom = draw(0, 6), .left = draw(0, 6), .right = draw(0, 6)};
    shape.in_h = draw(1, 13);
    shape.in_w = draw(1, 13);
    shape.epilogue.bias = draw(0, 1) == 1;
    shape.epilogue.residual = draw(0, 1) == 1;
    shape.epilogue.function = function_of(static_cast<Activation>(draw(0, 5)), 0.2F);
    if (verify(shape).empty()) return shape;
  }
}

ConvShape plain_3x3() {
  ConvShape shape;
  shape.in_channels = shape.out_channels = 3;
  shape.kernel_h = shape.kernel_w = 3;
  shape.in_h = shape.in_w = 6;
  shape.pad = {1, 1, 1, 1};
  return shape;
}

// Outputs of sums with these magnitudes.
Comparison compare_sums(const std::vector<float>& output, const std::vector<double>& reference,
                        const std::vector<double>& magnitudes, const Arithmetic& arithmetic) {
  std::vector<double> tolerances;
  for (std::size_t i = 0; i < reference.size(); ++i) {
    tolerances.push_back(tolerance_of(arithmetic, reference[i], magnitudes[i]));
  }
  return compare(output, reference, tolerances, element_of(arithmetic.precision));
}

}  // namespace

TEST_CASE("reference: 60 random shapes against the direct form") {
  constexpr std::uint32_t kSeed = 20240601;
  std::mt19937 engine(kSeed);
  for (int i = 0; i < 60; ++i) {
    const ConvShape shape = random_shape(engine);
    const int batch = 1 + static_cast<int>(engine() % 3);
    INFO("seed " << kSeed << ", case " << i << ", batch " << batch << ":\n" << print(shape));
    check_against_direct(make_case(shape, batch, i % 4 == 0 ? 1.0 : 0.3, engine()));
  }
}

TEST_CASE("reference: each epilogue") {
  for (const Activation activation : {Activation::none, Activation::relu, Activation::relu6, Activation::leaky_relu,
                                      Activation::sigmoid, Activation::silu}) {
    for (const bool bias : {false, true}) {
      for (const bool residual : {false, true}) {
        ConvShape shape = plain_3x3();
        shape.epilogue = {.bias = bias, .residual = residual, .function = function_of(activation, 0.3F)};
        INFO(print(shape));
        check_against_direct(make_case(shape, 2, 0.5, 7));
      }
    }
  }
}

TEST_CASE("reference: the epilogue's order and bounds, by hand") {
  ConvLayer layer{.name = "one", .shape = {}, .weights = {2.0F}, .bias = {1.0F}};
  layer.shape.in_w = 4;
  layer.shape.epilogue = {.bias = true, .residual = true, .function = function_of(Activation::relu6)};
  const std::vector<float> input = {-4, 0, 1, 3}, residual = {0.5F, -0.5F, 0.5F, 0.5F};
  CHECK(reference_convolution(layer, 1, input, residual) == std::vector<double>{0, 0.5, 3.5, 6});
  CHECK(ConvolutionReference(layer, 1, input, residual).sums() == std::vector<double>{-6.5, 0.5, 3.5, 7.5});
  CHECK(ConvolutionReference(layer, 1, input, residual).magnitudes() == std::vector<double>{9.5, 1.5, 3.5, 7.5});
  layer.shape.epilogue.function = function_of(Activation::leaky_relu, 2);
  CHECK(reference_convolution(layer, 1, input, residual) == std::vector<double>{-13, 0.5, 3.5, 7.5});
  CHECK(ConvolutionReference(layer, 1, input, residual).magnitudes() == std::vector<double>{9.5, 1.5, 3.5, 7.5});
}

TEST_CASE("reference: a pool of the activated outputs") {
  ConvLayer layer;  // 1x1, weight 1: the pixels are the inputs
  layer.name = "pooled";
  layer.shape.in_h = 3, layer.shape.in_w = 4;
  layer.shape.epilogue.function = function_of(Activation::relu);
  layer.shape.epilogue.residual = true;
  layer.shape.epilogue.pool = Pool{.kernel_h = 2, .kernel_w = 2, .stride_h = 2, .stride_w = 2};
  layer.weights = {1};
  const std::vector<float> input = {1, -2, 3, 4, -5, -6, 7, -8, 9, 9, 9, 9}, residual(12, 1.0F);
  CHECK(reference_convolution(layer, 1, input, residual) == std::vector<double>{2, 8});
  CHECK(ConvolutionReference(layer, 1, input, residual).outputs() == std::vector<double>{2, 8});
  layer.shape.epilogue.pool->kind = PoolKind::average;
  CHECK(reference_convolution(layer, 1, input, residual) == std::vector<double>{0.5, 4.25});
  CHECK(ConvolutionReference(layer, 1, input, residual).outputs() == std::vector<double>{0.5, 4.25});
  CHECK(longest_reduction(analyse(layer), layer.shape.epilogue) == 1 + 4);
}

TEST_CASE("reference: a pool that filters is a depthwise convolution of the activated outputs") {
  burin_test::Random random(5);
  for (int i = 0; i < 20; ++i) {
    ConvShape shape = burin_test::random_shape(random);
    shape.epilogue.residual = false;
    ConvLayer layer = burin_test::make_layer("filtered", shape, 0.4, static_cast<std::uint64_t>(i));
    Pool window{.kernel_h = random.integer(1, std::min(3, shape.conv_h())),
                .kernel_w = random.integer(1, std::min(4, shape.conv_w())),
                .stride_h = random.integer(1, 3),
                .stride_w = random.integer(1, 3)};
    window.pad = {random.integer(0, window.kernel_h - 1), random.integer(0, window.kernel_h - 1),
                  random.integer(0, window.kernel_w - 1), random.integer(0, window.kernel_w - 1)};
    ConvLayer depthwise;
    depthwise.name = "depthwise";
    ConvShape& of_window = depthwise.shape;
    of_window.in_channels = of_window.out_channels = of_window.groups = shape.out_channels;
    of_window.kernel_h = window.kernel_h, of_window.kernel_w = window.kernel_w;
    of_window.stride_h = window.stride_h, of_window.stride_w = window.stride_w;
    of_window.pad = window.pad;
    of_window.in_h = shape.conv_h(), of_window.in_w = shape.conv_w();
    of_window.epilogue = {.bias = true, .function = function_of(Activation::silu)};
    const std::vector<float> input = random_tensor(2 * shape.input_elements(), static_cast<std::uint64_t>(i));
    const std::vector<double> wide(input.begin(), input.end());
    const std::vector<double> before = reference_convolution_f64(layer, 2, wide, {});
    burin_test::add_filters(layer, window, static_cast<std::uint64_t>(i), of_window.epilogue.function);
    depthwise.weights = layer.filters, depthwise.bias = layer.filter_bias;
    REQUIRE(verify(layer).empty());
    REQUIRE(verify(depthwise).empty());
    const std::vector<double> expected = reference_convolution_f64(depthwise, 2, before, {});
    const std::vector<double> got = reference_convolution(layer, 2, input, {});
    REQUIRE(got.size() == expected.size());
    for (std::size_t k = 0; k < got.size(); ++k) CHECK(got[k] == Approx(expected[k]).margin(1e-12));
    CHECK(ConvolutionReference(layer, 2, input, {}).outputs() == got);
  }
}

TEST_CASE("reference: tolerances of outputs that a pool filters") {
  ConvLayer layer;
  layer.name = "filtered";
  layer.shape.in_h = 1, layer.shape.in_w = 2;
  layer.shape.epilogue.pool = Pool{.kind = PoolKind::filter, .kernel_h = 1, .kernel_w = 2};
  layer.weights = {1};
  layer.filters = {3, -2};
  layer.filter_bias = {0.5F};
  const std::vector<float> input = {1, 4};
  const Arithmetic arithmetic{.longest_reduction = 3};
  const double unit = kToleranceFactor * epsilon_of(ElementType::f32);
  CHECK(ConvolutionReference(layer, 1, input, {}).outputs() == std::vector<double>{-4.5});
  // 3 and 2 times what the sums may be off, and the rounding of a sum of two terms.
  const double sums = 2 * unit * (3 * 1 + 2 * 4), filtering = unit * std::sqrt(3.0) * (3 * 1 + 2 * 4 + 0.5);
  CHECK(ConvolutionReference(layer, 1, input, {}).tolerances(arithmetic)[0] == Approx(sums + filtering));
  layer.shape.epilogue.then = function_of(Activation::relu);
  CHECK(ConvolutionReference(layer, 1, input, {}).tolerances(arithmetic)[0] == std::numeric_limits<float>::min());
}

TEST_CASE("reference: a layer without nonzeros gives the epilogue of zero") {
  ConvShape shape = plain_3x3();
  shape.epilogue.function = function_of(Activation::sigmoid);
  const Case c = make_case(shape, 1, 0, 5);
  CHECK(reference_convolution(c.layer, 1, c.input, {}) == std::vector<double>(shape.output_elements(), 0.5));
  const ConvolutionReference reference(c.layer, 1, c.input, {});
  CHECK(reference.magnitudes() == std::vector<double>(shape.output_elements(), 0.0));
  CHECK(reference.tolerances({})[0] == Approx(0.5 * kToleranceFactor * epsilon_of(ElementType::f32)));
}

TEST_CASE("reference: padding larger than the image and taps that never touch it") {
  ConvShape shape = plain_3x3();
  shape.in_h = 1;
  shape.in_w = 2;
  shape.pad = {.top = 9, .bottom = 4, .left = 0, .right = 11};
  shape.dilation_h = 4;
  shape.stride_w = 3;
  check_against_direct(make_case(shape, 2, 1, 3));
}

TEST_CASE("reference: many channels are shared among threads") {
  ConvShape shape = plain_3x3();
  shape.in_channels = 24;
  shape.out_channels = 40;
  shape.in_h = shape.in_w = 20;
  check_against_direct(make_case(shape, 1, 0.7, 11));  // 3.5 million multiply-adds
}

TEST_CASE("reference: magnitude bounds the sum") {
  std::mt19937 engine(4);
  for (int i = 0; i < 20; ++i) {
    ConvShape shape = random_shape(engine);
    shape.epilogue.function = function_of(Activation::none);
    const Case c = make_case(shape, 2, 0.6, engine());
    INFO(print(shape));
    const ConvolutionReference reference(c.layer, 2, c.input, c.residual);
    const std::vector<double>&sums = reference.sums(), &magnitudes = reference.magnitudes();
    Case positive = c;
    for (auto* values : {&positive.layer.weights, &positive.layer.bias, &positive.input, &positive.residual}) {
      for (float& value : *values) value = std::abs(value);
    }
    positive.layer.shape.epilogue.pool.reset();
    const std::vector<double> expected = reference_convolution(positive.layer, 2, positive.input, positive.residual);
    for (std::size_t j = 0; j < sums.size(); ++j) {
      REQUIRE(std::abs(sums[j]) <= magnitudes[j]);
      REQUIRE(magnitudes[j] == Approx(expected[j]).epsilon(1e-12));
    }
  }
}

TEST_CASE("reference: arguments of a wrong size are an internal error") {
  const Case c = make_case(plain_3x3(), 1, 1, 1);
  CHECK_THROWS(reference_convolution(c.layer, 2, c.input, {}));
  CHECK_THROWS(reference_convolution(c.layer, 0, {}, {}));
  CHECK_THROWS(reference_convolution(c.layer, 1, c.input, c.input));  // a residual that the layer does not have
}

TEST_CASE("compare: within, and the worst element") {
  const std::vector<double> reference = {1, -2, 3}, magnitude = {1, 4, 3};
  const double eps = std::numeric_limits<float>::epsilon();
  Comparison result = compare_sums(std::vector<float>{1, -2, 3}, reference, magnitude, {.longest_reduction = 8});
  CHECK(result.within);
  CHECK(result.worst_ratio == 0);
  CHECK(result.relative_error == 0);

  std::vector<float> output = {1, static_cast<float>(-2 + 40 * eps), static_cast<float>(3 + 4 * eps)};
  result =
      compare_sums(output, reference, magnitude, {.longest_reduction = 8});  // tolerances: 12 eps times the magnitude
  CHECK(result.within);
  CHECK(result.worst_index == 1);
  CHECK(result.worst_ratio == Approx(40.0 / 48));
  CHECK(result.worst_value == output[1]);
  CHECK(result.worst_expected == -2);
  CHECK(result.worst_tolerance == Approx(kToleranceFactor * 3 * 4 * eps));
  CHECK(result.relative_error == Approx(std::sqrt(40.0 * 40 + 4 * 4) * eps / std::sqrt(14.0)));

  output[2] = static_cast<float>(3 + 38 * eps);
  result = compare_sums(output, reference, magnitude, {.longest_reduction = 8});
  CHECK_FALSE(result.within);
  CHECK(result.worst_index == 2);
  CHECK(
      compare_sums(output, reference, magnitude, {.longest_reduction = 24}).within);  // a longer reduction may err more
}

TEST_CASE("reference: an activation lets through what lies between its values") {
  const auto error = [](Activation activation, double x, double by) {
    return function_error(function_of(activation, 0.5F), x, by);
  };
  const double own = kToleranceFactor * epsilon_of(ElementType::f32);  // of each unit of what is computed anew
  CHECK(error(Activation::none, -3, 0.25) == 0.25);
  CHECK(error(Activation::relu, -3, 0.25) == 0);
  CHECK(error(Activation::relu, 0.125, 0.25) == 0.25);
  CHECK(error(Activation::relu6, 7, 0.5) == 0);
  CHECK(error(Activation::relu6, 6.25, 0.5) == 0.25);
  CHECK(error(Activation::leaky_relu, -3, 0.25) == Approx(0.125 + 1.5 * own));
  // Falling to 0, then rising.
  CHECK(function_error(function_of(Activation::leaky_relu, -2), -0.25, 1.25) == Approx(2.5).epsilon(1e-5));
  CHECK(function_error(function_of(Activation::leaky_relu, -2), 1, 1.125) == Approx(1.125).epsilon(1e-5));
  CHECK(error(Activation::sigmoid, 0, 1e9) == Approx(0.5 + 0.5 * own));
  CHECK(error(Activation::sigmoid, -14.5, 3.1) < 1.2e-5);  // where a tolerance of the sum would be 3.1
  CHECK(error(Activation::sigmoid, 14.5, 3.1) < 1.2e-5 + own);
  CHECK(error(Activation::silu, -90, 1e-6) > 1e-37);  // FP32 has 0 there, since exp(90) is infinite
  CHECK(error(Activation::silu, -90, 1e-6) < 2e-36);
  CHECK(error(Activation::silu, -1.25, 1) == Approx(0.1625).epsilon(0.1));
  CHECK(error(Activation::silu, -1.28, 0.01) < 1e-4);
  // The lowest value lies between them.
  const std::optional<Elementwise> silu = function_of(Activation::silu);
  CHECK(function_error(silu, -1, 0.5) >= std::abs(reference_function(silu, -1.2785) - reference_function(silu, -1)));
}

TEST_CASE("reference: tolerances of pooled outputs") {
  ConvLayer layer;
  layer.name = "pooled";
  layer.shape.in_h = 1, layer.shape.in_w = 4;
  layer.shape.epilogue.function = function_of(Activation::relu);
  layer.shape.epilogue.pool = Pool{.kernel_h = 1, .kernel_w = 2, .stride_h = 1, .stride_w = 2};
  layer.weights = {1};
  const std::vector<float> input = {1, -4, -2, -3};
  const Arithmetic arithmetic{.longest_reduction = 3};
  const double sum = 2 * kToleranceFactor * epsilon_of(ElementType::f32);  // of a sum of 3 terms
  const std::vector<double> largest = ConvolutionReference(layer, 1, input, {}).tolerances(arithmetic);
  REQUIRE(largest.size() == 2);
  CHECK(largest[0] == sum);
  CHECK(largest[1] == std::numeric_limits<float>::min());  // there is nothing that rounding could change
  layer.shape.epilogue.pool->kind = PoolKind::average;
  const std::vector<double> mean = ConvolutionReference(layer, 1, input, {}).tolerances(arithmetic);
  CHECK(mean[0] == Approx(sum / 2 + kToleranceFactor * epsilon_of(ElementType::f32) * std::sqrt(3.0) / 2));
  CHECK(mean[1] == std::numeric_limits<float>::min());
}

TEST_CASE("reference: weights of the wrong sign before a sigmoid are not within its tolerance") {
  ConvLayer layer;
  layer.name = "saturated";
  layer.shape.in_channels = 1000;
  layer.shape.epilogue.function = function_of(Activation::sigmoid);
  layer.weights.assign(1000, 205.0F);
  std::vector<float> input(1000, 1.0F);
  for (std::size_t i = 1; i < input.size(); i += 2) input[i] = -1;
  input[1] -= 0.0707F;
  const ConvolutionReference reference(layer, 1, input, {});
  CHECK(reference.sums()[0] == Approx(-14.5).epsilon(0.01));
  const Arithmetic arithmetic{.longest_reduction = 1000};
  CHECK(tolerance_of(arithmetic, 0, reference.magnitudes()[0]) == Approx(3.1).epsilon(0.01));
  for (float& weight : layer.weights) weight = -weight;
  const auto negated = static_cast<float>(ConvolutionReference(layer, 1, input, {}).outputs()[0]);
  CHECK(negated > 0.999F);
  CHECK_FALSE(compare(std::vector<float>{negated}, reference.outputs(), reference.tolerances(arithmetic)).within);
}

TEST_CASE("compare: NaN and infinity never pass, wherever they stand") {
  const std::vector<double> reference(5, 1.0), magnitude(5, std::numeric_limits<double>::max());
  for (const float poison : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                             -std::numeric_limits<float>::infinity()}) {
    for (std::size_t at = 0; at < reference.size(); ++at) {
      std::vector<float> output(5, 1.0F);
      output[at] = poison;
      const Comparison result = compare_sums(output, reference, magnitude, {.longest_reduction = 1});
      CHECK_FALSE(result.within);
      CHECK(result.worst_index == static_cast<std::int64_t>(at));
      CHECK(std::isinf(result.worst_ratio));
      CHECK(std::isinf(result.relative_error));
    }
  }
}

TEST_CASE("compare: an element without terms must be exact, but for numbers below the smallest normal") {
  const std::vector<double> zero = {0};
  CHECK(compare_sums(std::vector<float>{0}, zero, zero, {.longest_reduction = 0}).within);
  CHECK(compare_sums(std::vector<float>{std::numeric_limits<float>::denorm_min()}, zero, zero, {.longest_reduction = 0})
            .within);
  CHECK_FALSE(compare_sums(std::vector<float>{1e-30F}, zero, zero, {.longest_reduction = 0}).within);
  CHECK_THROWS(compare({}, {}, {}));
  CHECK_THROWS(compare_sums(std::vector<float>{0, 0}, zero, zero, {.longest_reduction = 0}));
}

TEST_CASE("output indices are described") {
  ConvShape shape = plain_3x3();  // 3 x 6 x 6
  CHECK(describe_output_index(shape, 0) == "image 0, channel 0, row 0, col 0");
  CHECK(describe_output_index(shape, 2 * 108 + 36 + 4 * 6 + 5) == "image 2, channel 1, row 4, col 5");
}

TEST_CASE("random tensors are the same everywhere, never zero, and fill the range from -1 to 1") {
  // splitmix64 from seed 0 starts 0xe220a8397b1dcdaf, 0x6e789e6aa1b965f4, 0x06c45d188009454f
  const std::vector<float> first = random_tensor(3, 0);
  const auto from_bits = [](std::uint64_t bits) { return static_cast<float>((2.0 * (bits >> 40) + 1) / 16777216 - 1); };
  CHECK(first == std::vector<float>{from_bits(0xe220a8397b1dcdaf), from_bits(0x6e789e6aa1b965f4),
                                    from_bits(0x06c45d188009454f)});
  CHECK(random_tensor(10, 1) != random_tensor(10, 2));
  CHECK(random_tensor(0, 1).empty());

  const std::vector<float> many = random_tensor(100'000, 42);
  double sum = 0, squares = 0;
  float low = 1, high = -1;
  for (const float value : many) {
    REQUIRE(value != 0);
    sum += value;
    squares += static_cast<double>(value) * value;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  CHECK(low >= -1);
  CHECK(low < -0.999F);
  CHECK(high <= 1);
  CHECK(high > 0.999F);
  CHECK(std::abs(sum / many.size()) < 0.01);
  CHECK(squares / many.size() == Approx(1.0 / 3).epsilon(0.01));
}

TEST_CASE("compare: half outputs may be off by their own rounding") {
  const std::vector<double> reference = {1, 1000}, magnitude = {1, 1000};
  const auto within = [&](Precision precision, float one, float thousand) {
    return compare_sums(std::vector<float>{one, thousand}, reference, magnitude,
                        {.precision = precision, .longest_reduction = 3})
        .within;
  };
  CHECK(within(Precision::fp16, 1, 1000));
  CHECK(within(Precision::fp16, 1 + 0x1p-11F, 1000.25F));  // half a unit of the last place; more than that of FP32
  CHECK_FALSE(within(Precision::fp32, 1 + 0x1p-11F, 1000));
  CHECK_FALSE(within(Precision::fp16, 1 + 0x1p-10F, 1000));
  CHECK_FALSE(within(Precision::fp16, 1, 1001));
  CHECK(within(Precision::bf16, 1 + 0x1p-8F, 1002));
  CHECK_FALSE(within(Precision::bf16, 1 + 0x1p-7F, 1000));
}

TEST_CASE("compare: sums in FP16 err with their terms, FP32 sums of them less") {
  const auto tolerance = [](int promote_every, int terms) {
    return tolerance_of({Precision::fp16x2, promote_every, terms}, 0, 1);
  };
  CHECK(tolerance(0, 100) > tolerance(32, 100));
  CHECK(tolerance(32, 100) > tolerance(8, 100));
  CHECK(tolerance(200, 100) == tolerance(0, 100));
  CHECK(tolerance(0, 8) < tolerance(0, 100));
  CHECK(tolerance(32, 100) > tolerance_of({Precision::fp16, 0, 100}, 0, 1));
  // A weight that is left out of 100 shows: its share of the magnitude is larger.
  CHECK(tolerance(32, 100) < 1.0 / 100);
}

TEST_CASE("compare: one product in FP16 may be off by the rounding of its weight and its own") {
  // Both are ties that go down.
  const double weight = 1.5 + 0x1p-11, input = 1 + 0x3p-10;
  const std::uint16_t product = fma_f16(to_half(ElementType::f16, weight), to_half(ElementType::f16, input), 0);
  const double exact = weight * input, lost = exact - from_half(ElementType::f16, product);
  CHECK(lost > epsilon_of(ElementType::f16));
  CHECK(lost < tolerance_of({Precision::fp16x2, 0, 1}, exact, exact));
}

TEST_CASE("compare: what FP16 cannot hold becomes infinite") {
  const std::vector<double> magnitude(2, 7e4);
  const auto check = [&](double expected, float output) {
    return compare_sums(std::vector<float>{output, 1}, std::vector<double>{expected, 1}, magnitude,
                        {.precision = Precision::fp16, .longest_reduction = 1})
        .within;
  };
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  CHECK(check(1e6, kInfinity));
  CHECK(check(-1e6, -kInfinity));
  CHECK(check(65520, kInfinity));
  CHECK_FALSE(check(1e6, -kInfinity));
  CHECK_FALSE(check(6e4, kInfinity));
  CHECK_FALSE(check(1e6, 65504));
}

TEST_CASE("compare: infinities that are the same are no error") {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const std::vector<double> expected = {1, kInfinity, -kInfinity};
  CHECK(compare(std::vector<float>{1, kInf, -kInf}, expected, std::vector<double>{1e-6, 1e-6, 1e-6}).within);
  CHECK(!compare(std::vector<float>{1, -kInf, -kInf}, expected, std::vector<double>{1e-6, 1e-6, 1e-6}).within);
  CHECK(!compare(std::vector<float>{1, 5, -kInf}, expected, std::vector<double>{1e-6, 1e-6, 1e-6}).within);
}

TEST_CASE("reference: rounded weights and inputs may move a sum by what each of them loses") {
  ConvLayer layer{.name = "two", .shape = {}, .weights = {1 + 0x1p-12F, -2}, .bias = {}};
  layer.shape.in_channels = 2;
  layer.shape.out_channels = layer.shape.in_h = layer.shape.in_w = layer.shape.kernel_h = layer.shape.kernel_w = 1;
  const std::vector<float> input = {3, 1 + 0x1p-13F};
  const auto errors = [&](FactorType weights, FactorType inputs) {
    return storage_errors(layer, {.weights = weights, .inputs = inputs}, 1, input);
  };
  CHECK(errors(FactorType::f32, FactorType::f32).empty());
  CHECK(errors(FactorType::f16, FactorType::f32) == std::vector<double>{3 * 0x1p-12});
  CHECK(errors(FactorType::f32, FactorType::f16) == std::vector<double>{2 * 0x1p-13});
  CHECK(errors(FactorType::f16, FactorType::f16) == std::vector<double>{3 * 0x1p-12 + 2 * 0x1p-13});
  CHECK(errors(FactorType::tf32, FactorType::tf32) == errors(FactorType::f16, FactorType::f16));
  // Libraries that are called on halves have biases in halves.
  layer.bias = {1 + 0x1p-13F};
  layer.shape.epilogue.bias = true;
  CHECK(storage_errors(layer, {.biases = ElementType::f16}, 1, input) == std::vector<double>{0x1p-13});
  CHECK(storage_errors(layer, {.weights = FactorType::f16, .biases = ElementType::f16}, 1, input) ==
        std::vector<double>{3 * 0x1p-12 + 0x1p-13});
  CHECK(errors(FactorType::f32, FactorType::f32).empty());
  layer.bias.clear();
  layer.shape.epilogue.bias = false;
  CHECK(storage_errors(layer, {.biases = ElementType::f16}, 1, input) == std::vector<double>{0});
  // Residuals are not rounded: only what is multiplied counts, wherever they are added.
  layer.shape.epilogue = {.residual = true, .function = Elementwise{}, .residual_last = true};
  CHECK(errors(FactorType::f16, FactorType::f16) == std::vector<double>{3 * 0x1p-12 + 2 * 0x1p-13});
}

namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN(), kInf = std::numeric_limits<float>::infinity();

// Two groups of two channels with one output each, of three pixels: weights 1 and 0, 0 and -1.
ConvLayer half_zero_layer() {
  ConvLayer layer{.name = "halves", .shape = {}, .weights = {1, 0, 0, -1}, .bias = {}};
  layer.shape.in_channels = 4;
  layer.shape.out_channels = layer.shape.groups = 2;
  layer.shape.in_h = layer.shape.kernel_h = layer.shape.kernel_w = 1;
  layer.shape.in_w = 3;
  return layer;
}

bool is_right(const ConvLayer& layer, const std::vector<float>& input, const std::vector<float>& output,
              const Arithmetic& arithmetic) {
  const ConvolutionReference reference(layer, 1, input, {});
  return compare(output, reference.outputs(), reference.tolerances(arithmetic), ElementType::f32,
                 reference.leeway(arithmetic))
      .within;
}

}  // namespace

TEST_CASE("non-finite inputs: how far each reach lets NaN go") {
  const ConvLayer layer = half_zero_layer();
  const auto right = [&](const std::vector<float>& input, const std::vector<float>& output, NonFiniteReach reach) {
    return is_right(layer, input, output, {.longest_reduction = 1, .reach = reach});
  };
  using enum NonFiniteReach;
  // The zero weight of the first output meets an infinity at the first pixel.
  const std::vector<float> behind_zero = {1, 2, 3, kInf, 5, 6, 7, 8, 9, 10, 11, 12};
  const std::vector<float> exact = {1, 2, 3, -10, -11, -12};
  for (const NonFiniteReach reach : {nonzeros, window, image}) CHECK(right(behind_zero, exact, reach));
  const std::vector<float> multiplied = {kNaN, 2, 3, -10, -11, -12};
  CHECK_FALSE(right(behind_zero, multiplied, nonzeros));
  CHECK(right(behind_zero, multiplied, window));
  CHECK(right(behind_zero, multiplied, image));
  for (const float spread : {kNaN, kInf, -kInf}) {
    const std::vector<float> beside = {1, spread, 3, -10, -11, -12};
    CHECK_FALSE(right(behind_zero, beside, window));
    CHECK(right(behind_zero, beside, image));
    // The other group has no part in it.
    CHECK_FALSE(right(behind_zero, {1, 2, 3, -10, spread, -12}, image));
  }
  // What is finite must be right all the same.
  for (const NonFiniteReach reach : {nonzeros, window, image}) {
    CHECK_FALSE(right(behind_zero, {1.5, 2, 3, -10, -11, -12}, reach));
    CHECK(right(behind_zero, {kInf, 2, 3, -10, -11, -12}, reach) == (reach == image));
  }
  // A nonzero weight meets it.
  const std::vector<float> read = {-kInf, kNaN, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  CHECK(right(read, {-kInf, 2, 3, -10, -11, -12}, nonzeros) == false);
  const std::vector<float> infinite = {-kInf, kNaN, 3, -10, -11, -12};
  for (const NonFiniteReach reach : {nonzeros, window, image}) CHECK(right(read, infinite, reach));
  for (const float other : {0.0F, kInf, 1.0F}) CHECK_FALSE(right(read, {other, kNaN, 3, -10, -11, -12}, window));
  CHECK_FALSE(right(read, {-kInf, 2, 3, -10, -11, -12}, image));
  for (const float other : {kInf, -kInf, 0.0F}) {
    CHECK_FALSE(right(read, {-kInf, other, 3, -10, -11, -12}, nonzeros));
    CHECK_FALSE(right(read, {-kInf, other, 3, -10, -11, -12}, window));
  }
}

TEST_CASE("non-finite inputs: without one there is no leeway") {
  const std::vector<float> input(12, 1);
  CHECK(ConvolutionReference(half_zero_layer(), 1, input, {}).leeway({.reach = NonFiniteReach::image}).empty());
}

TEST_CASE("non-finite inputs: a ReLU keeps NaN, and makes an exact zero of minus infinity") {
  ConvLayer layer = half_zero_layer();
  layer.shape.epilogue.function = function_of(Activation::relu);
  const std::vector<float> input = {-kInf, kNaN, kInf, 4, 5, 6, 7, 8, 9, 10, 11, -12};
  Arithmetic arithmetic{.longest_reduction = 1, .reach = NonFiniteReach::nonzeros};
  CHECK(is_right(layer, input, {0, kNaN, kInf, 0, 0, 12}, arithmetic));
  CHECK_FALSE(is_right(layer, input, {1e-6F, kNaN, kInf, 0, 0, 12}, arithmetic));
  CHECK_FALSE(is_right(layer, input, {0, 0, kInf, 0, 0, 12}, arithmetic));
  arithmetic.relu_drops_nan = true;
  CHECK(is_right(layer, input, {0, 0, kInf, 0, 0, 12}, arithmetic));
  CHECK_FALSE(is_right(layer, input, {0, 1, kInf, 0, 0, 12}, arithmetic));
}

TEST_CASE("non-finite inputs: what is added to the zero of an infinite sum is rounded") {
  ConvLayer layer = half_zero_layer();
  layer.shape.epilogue.function = function_of(Activation::relu);
  layer.shape.epilogue.residual = layer.shape.epilogue.residual_last = true;
  const std::vector<float> input = {-kInf, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  const ConvolutionReference reference(layer, 1, input, std::vector<float>(6, 0.3F));
  CHECK(reference.outputs()[0] == static_cast<double>(0.3F));
  const double tolerance = reference.tolerances({.longest_reduction = 1})[0];
  CHECK(tolerance > 0.3 * std::ldexp(1.0, -24));
  CHECK(tolerance < 1e-6);
}

TEST_CASE("non-finite inputs: a largest value leaves NaN out, and may leave out what a zero weight made NaN of") {
  ConvLayer layer = half_zero_layer();
  layer.shape.epilogue.pool = Pool{.kernel_h = 1, .kernel_w = 3, .stride_h = 1, .stride_w = 3};
  const auto right = [&](const std::vector<float>& input, float first, NonFiniteReach reach) {
    return is_right(layer, input, {first, -10}, {.longest_reduction = 1, .reach = reach});
  };
  using enum NonFiniteReach;
  const std::vector<float> read = {1, kNaN, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  CHECK(right(read, 3, nonzeros));
  CHECK_FALSE(right(read, kNaN, nonzeros));
  // The largest sum may have become NaN.
  const std::vector<float> behind_zero = {1, 2, 3, 4, 5, kInf, 7, 8, 9, 10, 11, 12};
  CHECK(right(behind_zero, 3, nonzeros));
  CHECK_FALSE(right(behind_zero, 2, nonzeros));
  for (const float value : {2.0F, 3.0F, kNaN}) CHECK(right(behind_zero, value, window));
  for (const float value : {1.0F, 4.0F, kInf}) CHECK_FALSE(right(behind_zero, value, window));
  layer.shape.epilogue.pool->kind = PoolKind::average;
  const auto mean = [&](float first, NonFiniteReach reach) {
    return is_right(layer, behind_zero, {first, -11}, {.longest_reduction = 4, .reach = reach});
  };
  CHECK(mean(2, window));
  CHECK(mean(kNaN, window));
  CHECK_FALSE(mean(kNaN, nonzeros));
  CHECK_FALSE(mean(1, window));
}
