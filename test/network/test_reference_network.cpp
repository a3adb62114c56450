// Each operator against values worked out by hand.
#include <cmath>

#include "test/catch.h"
#include "test/ir/random_layers.h"
#include "test/ir/small_network.h"
#include "test/network/reference_tensors.h"

using namespace burin;
using burin_test::GraphBuilder;

namespace {

using Values = std::vector<double>;

// The output of one operator for these inputs: shape of one image, and the values of all images.
struct Input {
  std::vector<std::int64_t> shape;
  std::vector<float> values;
};

Values run(OperatorKind kind, const std::vector<Input>& inputs, int batch = 1) {
  GraphBuilder graph;
  std::vector<int> tensors;
  std::vector<std::span<const float>> values;
  for (const Input& input : inputs) {
    tensors.push_back(graph.input(input.shape));
    values.emplace_back(input.values);
  }
  const int output = graph.add("op", std::move(kind), tensors);
  const Network network = graph.finish({output});
  CHECK(verify(network).empty());
  const auto outputs = run_reference(network, batch, values);
  REQUIRE(outputs.size() == 1);
  return outputs[0];
}

void check_near(const Values& values, const Values& expected) {
  REQUIRE(values.size() == expected.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    INFO("element " << i);
    CHECK(values[i] == Approx(expected[i]).epsilon(1e-6).margin(1e-12));
  }
}

Pool pool_of(PoolKind kind, int kernel, int stride, int pad) {
  Pool pool;
  pool.kind = kind;
  pool.kernel_h = pool.kernel_w = kernel;
  pool.stride_h = pool.stride_w = stride;
  pool.pad = {pad, pad, pad, pad};
  return pool;
}

const Input kNine = {{1, 3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9}};

}  // namespace

TEST_CASE("reference_network: convolution with bias, residual and activation") {
  GraphBuilder graph;
  const int x = graph.input({1, 2, 2}), other = graph.input({1, 2, 2});
  ConvLayer layer;
  layer.name = "conv";
  layer.shape.epilogue = {.bias = true, .residual = true, .function = function_of(Activation::relu)};
  layer.weights = {2};
  layer.bias = {1};
  const Network network = graph.finish({graph.convolution(layer, {x, other})});
  const std::vector<float> input = {1, -2, 3, -4}, residual = {10, 1, 0, 8};
  CHECK(run_reference(network, 1, {input, residual})[0] == Values{13, 0, 7, 1});
  Network last = network;
  last.layers[0].shape.epilogue.residual_last = true;
  CHECK(run_reference(last, 1, {input, residual})[0] == Values{13, 1, 7, 8});
}

TEST_CASE("reference_network: linear, of two images") {
  Linear linear{.in_features = 2, .out_features = 3, .weights = {1, 2, 3, 4, 5, 6}, .bias = {0, 0, -20}};
  CHECK(run(linear, {{{2}, {1, 1, 10, 0}}}, 2) == Values{3, 7, -9, 10, 30, 30});
  linear.function = function_of(Activation::relu6);
  linear.bias.clear();
  CHECK(run(linear, {{{2}, {1, 1, -10, 0}}}, 2) == Values{3, 6, 6, 0, 0, 0});
}

TEST_CASE("reference_network: affine by channel") {
  CHECK(run(ChannelAffine{{2, -1}, {0, 10}}, {{{2, 1, 2}, {1, 2, 3, 4, 5, 6, 7, 8}}}, 2) ==
        Values{2, 4, 7, 6, 10, 12, 3, 2});
  CHECK(run(ChannelAffine{{2, -1}, {0, 10}}, {{{2}, {1, 3}}}) == Values{2, 7});
}

TEST_CASE("reference_network: element-wise functions") {
  const Input x = {{4}, {-4, -0.5F, 0.5F, 9}};
  const auto of = [&](ElementFunction function, float alpha = 0, float beta = 0) {
    return run(Elementwise{function, alpha, beta}, {x});
  };
  CHECK(of(ElementFunction::relu) == Values{0, 0, 0.5, 9});
  CHECK(of(ElementFunction::leaky_relu, 0.25F) == Values{-1, -0.125, 0.5, 9});
  CHECK(of(ElementFunction::hard_sigmoid, 0.25F, 0.5F) == Values{0, 0.375, 0.625, 1});
  CHECK(of(ElementFunction::clip, -1, 6) == Values{-1, -0.5, 0.5, 6});
  check_near(of(ElementFunction::hard_swish), {0, -0.5 * (0.5 - 0.5 / 6), 0.5 * (0.5 + 0.5 / 6), 9});
  check_near(of(ElementFunction::sigmoid), {0.0179862100, 0.3775406688, 0.6224593312, 0.9998766054});
  check_near(of(ElementFunction::silu), {-0.0719448398, -0.1887703344, 0.3112296656, 8.9988894488});
}

TEST_CASE("reference_network: functions that are not piecewise linear") {
  using enum ElementFunction;
  const Input x = {{4}, {-2, -0.5F, 0.5F, 3}};
  const auto of = [&](ElementFunction function, float alpha = 0, float beta = 0) {
    return run(Elementwise{function, alpha, beta}, {x});
  };
  check_near(of(tanh), {-0.9640275801, -0.4621171573, 0.4621171573, 0.9950547537});
  check_near(of(erf), {-0.9953222650, -0.5204998778, 0.5204998778, 0.9999779095});
  check_near(of(gelu), {-0.0455002639, -0.1542687694, 0.3457312306, 2.9959503059});
  check_near(of(gelu_tanh), {-0.0454023059, -0.1542859714, 0.3457140286, 2.9963627331});
  check_near(of(mish), {-0.2525014827, -0.2207437747, 0.3752455212, 2.9865350049});
  check_near(of(softplus), {0.1269280110, 0.4740769842, 0.9740769842, 3.0485873516});
  check_near(of(softsign), {-2.0 / 3, -1.0 / 3, 1.0 / 3, 0.75});
  check_near(of(elu, 2, 0.5F), {-1.7293294335, -0.7869386806, 0.25, 1.5});
  check_near(of(celu, 2), {-1.2642411177, -0.4423984339, 0.5, 3});
  CHECK(of(thresholded_relu, 0.5F) == Values{0, 0, 0, 3});
  CHECK(of(power, 3) == Values{-8, -0.125, 0.125, 27});
  CHECK(of(absolute) == Values{2, 0.5, 0.5, 3});
  check_near(of(tangent), {2.1850398633, -0.5463024898, 0.5463024898, -0.1425465431});
  check_near(of(sinh), {-3.6268604078, -0.5210953055, 0.5210953055, 10.0178749274});
  check_near(of(cosh), {3.7621956911, 1.1276259652, 1.1276259652, 10.0676619958});
  check_near(of(atan), {-1.1071487178, -0.4636476090, 0.4636476090, 1.2490457724});
  check_near(of(asinh), {-1.4436354752, -0.4812118251, 0.4812118251, 1.8184464592});
  const Input unit = {{3}, {-0.75F, 0.25F, 0.5F}};
  check_near(run(Elementwise{asin}, {unit}), {-0.8480620790, 0.2526802551, 0.5235987756});
  check_near(run(Elementwise{acos}, {unit}), {2.4188584057, 1.3181160717, 1.0471975512});
  check_near(run(Elementwise{atanh}, {unit}), {-0.9729550745, 0.2554128119, 0.5493061443});
  check_near(run(Elementwise{acosh}, {{{3}, {1, 1.5F, 4}}}), {0, 0.9624236501, 2.0634370689});
  CHECK(of(shrink, 0.5F, 0.25F) == Values{-1.75, 0, 0, 2.75});
  CHECK(of(sign) == Values{-1, -1, 1, 1});
  CHECK(of(floor) == Values{-2, -1, 0, 3});
  CHECK(of(ceil) == Values{-2, 0, 1, 3});
  CHECK(of(reciprocal) == Values{-0.5, -2, 2, 1.0 / 3});
  CHECK(run(Elementwise{round}, {{{6}, {-2.5F, -1.5F, -0.5F, 0.5F, 1.5F, 2.4F}}}) == Values{-2, -2, 0, 0, 2, 2});
}

TEST_CASE("reference_network: combinations, whose second operand may be a constant") {
  using enum Combination;
  const Input a = {{1, 2, 2}, {1, -2, 3, -4}}, row = {{1, 1, 2}, {2, 4}}, column = {{1, 2, 1}, {2, 4}};
  CHECK(run(Combine{subtract}, {a, row}) == Values{-1, -6, 1, -8});
  CHECK(run(Combine{subtract}, {a, column}) == Values{-1, -4, -1, -8});
  CHECK(run(Combine{divide}, {a, row}) == Values{0.5, -0.5, 1.5, -1});
  CHECK(run(Combine{smaller}, {a, row}) == Values{1, -2, 2, -4});
  CHECK(run(Combine{larger}, {a, row}) == Values{2, 4, 3, 4});
  CHECK(run(Combine{prelu}, {a, row}) == Values{1, -8, 3, -16});
  const Input parts = {{1, 2, 2}, {7, -7, 1.5F, -0.25F}};
  CHECK(run(Combine{remainder}, {parts, row}) == Values{1, -3, 1.5, -0.25});
  Combine turned{subtract};
  turned.swapped = true;
  CHECK(run(turned, {a, row}) == Values{1, 6, -1, 8});
  turned.constant = ConstantOperand{{1, 1, 1}, {10}};
  CHECK(run(turned, {a}) == Values{9, 12, 7, 14});
  Combine rises{power};
  rises.constant = ConstantOperand{{1, 2, 1}, {2, 3}};
  CHECK(run(rises, {a}) == Values{1, 4, 27, -64});
}

TEST_CASE("reference_network: comparisons give 0 and 1, and choices take what such numbers say") {
  using enum Combination;
  const Input a = {{1, 2, 2}, {1, 2, 3, 4}}, row = {{1, 1, 2}, {3, 2}}, truth = {{1, 2, 1}, {0, 1}};
  CHECK(run(Combine{equal}, {a, row}) == Values{0, 1, 1, 0});
  CHECK(run(Combine{less}, {a, row}) == Values{1, 0, 0, 0});
  CHECK(run(Combine{less_or_equal}, {a, row}) == Values{1, 1, 1, 0});
  CHECK(run(Combine{keep}, {a, truth}) == Values{0, 0, 3, 4});
  CHECK(run(Combine{drop}, {a, truth}) == Values{1, 2, 0, 0});
  Combine masked{keep};
  masked.otherwise = -std::numeric_limits<float>::infinity();
  CHECK(run(masked, {a, truth})[1] == masked.otherwise);
  const Input x = {{5}, {-1, 0.5F, 1, 2, std::numeric_limits<float>::infinity()}};
  constexpr float kMost = std::numeric_limits<float>::max();
  CHECK(run(Elementwise{ElementFunction::within, 0.5F, 1}, {x}) == Values{0, 1, 1, 0, 0});
  CHECK(run(Elementwise{ElementFunction::within, 1, kMost}, {x}) == Values{0, 0, 1, 1, 1});
  CHECK(run(Elementwise{ElementFunction::within, -kMost, 0.5F}, {x}) == Values{1, 1, 0, 0, 0});
}

TEST_CASE("reference_network: products of matrices") {
  const Input a = {{2, 3}, {1, 2, 3, 4, 5, 6}}, b = {{3, 2}, {1, 0, 0, 1, 2, 2}};
  CHECK(run(MatMul{}, {a, b}) == Values{7, 8, 16, 17});
  MatMul gram;
  gram.right_order = {1, 0};
  CHECK(run(gram, {a, a}) == Values{14, 32, 32, 77});
  gram.left_order = {1, 0};
  gram.right_order.clear();
  CHECK(run(gram, {a, a}) == Values{17, 22, 27, 22, 29, 36, 27, 36, 45});
  // One matrix for all, on either side; numbers of the model, on either side.
  const Input rows = {{2, 1, 2}, {1, 2, 3, 4}}, column = {{1, 2, 1}, {1, -1}};
  CHECK(run(MatMul{}, {rows, column}) == Values{-1, -1});
  MatMul constant;
  constant.constant = ConstantOperand{{2, 2, 1}, {1, 1, 10, 0}};
  CHECK(run(constant, {rows}) == Values{3, 30});
  constant.constant = ConstantOperand{{1, 1, 1}, {-2}};
  constant.constant_first = true;
  constant.then = Elementwise{ElementFunction::relu};
  CHECK(run(constant, {rows}) == Values{0, 0, 0, 0});
  constant.scale = -0.5F;
  CHECK(run(constant, {rows}) == Values{1, 2, 3, 4});
  // Two images.
  CHECK(run(MatMul{}, {Input{{1, 2}, {1, 2, 3, 4}}, Input{{2, 1}, {1, 1, 0, 1}}}, 2) == Values{3, 4});
}

TEST_CASE("reference_network: statistics along axes") {
  using enum Statistic;
  const Input x = {{2, 1, 3}, {1, -2, 3, 4, 5, -6}};
  CHECK(run(Reduce{sum, {0}}, {x}) == Values{5, 3, -3});
  CHECK(run(Reduce{mean, {2}}, {x}) == Values{2.0 / 3, 1});
  CHECK(run(Reduce{largest, {1, 2}}, {x}) == Values{3, 5});
  CHECK(run(Reduce{smallest, {0, 2}}, {x}) == Values{-6});
  CHECK(run(Reduce{product, {0}}, {x}) == Values{4, -10, -18});
  CHECK(run(Reduce{sum_of_magnitudes, {2}}, {x}) == Values{6, 15});
  CHECK(run(Reduce{sum_of_squares, {2}, Elementwise{ElementFunction::sqrt}}, {x}) ==
        Values{std::sqrt(14), std::sqrt(77)});
  check_near(run(Reduce{log_sum_exp, {0}}, {{{2, 1, 1}, {1000, 1000}}}), {1000 + std::log(2)});
}

TEST_CASE("reference_network: normalizations along axes") {
  using enum Normalization;
  const Input x = {{2, 2}, {1, 3, 4, 8}};
  CHECK(run(Normalize{deviation, {1}}, {x}) == Values{-1, 1, -1, 1});
  check_near(run(Normalize{deviation, {0}, 0.75F}, {x}),
             {-1.5 / std::sqrt(3), -2.5 / std::sqrt(7), 1.5 / std::sqrt(3), 2.5 / std::sqrt(7)});
  check_near(run(Normalize{root_mean_square, {1}, 4}, {x}), {1 / 3.0, 1, 4 / std::sqrt(44), 8 / std::sqrt(44)});
  CHECK(run(Normalize{magnitudes, {1}}, {x}) == Values{0.25, 0.75, 1 / 3.0, 2 / 3.0});
  CHECK(run(Normalize{length, {0}}, {{{2, 1}, {3, -4}}}) == Values{0.6, -0.8});
  CHECK(run(Normalize{length, {0}}, {{{2, 1}, {0, 0}}}) == Values{0, 0});
  check_near(run(Normalize{softmax, {0, 1}}, {{{1, 2}, {0, 0}}}), {0.5, 0.5});
  check_near(run(Normalize{log_softmax, {1}}, {{{1, 2}, {1e4F, 1e4F}}}), {-std::log(2), -std::log(2)});
  Normalize scaled{deviation, {1}};
  scaled.scale = ConstantOperand{{1, 2}, {2, 3}};
  scaled.shift = ConstantOperand{{1, 2}, {10, 20}};
  scaled.then = Elementwise{ElementFunction::clip, 9, 21};
  CHECK(run(scaled, {x}) == Values{9, 21, 9, 21});
}

TEST_CASE("reference_network: combine, whole tensors and by channel") {
  const Input a = {{2, 1, 2}, {1, 2, 3, 4, 5, 6, 7, 8}}, b = {{2, 1, 2}, {1, 1, 2, 2, 3, 3, 4, 4}};
  CHECK(run(Combine{Combination::add}, {a, b}, 2) == Values{2, 3, 5, 6, 8, 9, 11, 12});
  CHECK(run(Combine{Combination::multiply}, {a, b}, 2) == Values{1, 2, 6, 8, 15, 18, 28, 32});
  const Input by_channel = {{2, 1, 1}, {1, 10, 100, 1000}};
  CHECK(run(Combine{Combination::multiply}, {a, by_channel}, 2) == Values{1, 2, 30, 40, 500, 600, 7000, 8000});
  CHECK(run(Combine{Combination::add}, {a, by_channel}, 2) == Values{2, 3, 13, 14, 105, 106, 1007, 1008});
}

TEST_CASE("reference_network: max pooling ignores the padding") {
  const Input negative = {{1, 2, 2}, {-1, -2, -3, -4}};
  CHECK(run(pool_of(PoolKind::max, 2, 1, 1), {negative}) == Values{-1, -1, -2, -1, -1, -2, -3, -3, -4});
  CHECK(run(pool_of(PoolKind::max, 2, 2, 0), {kNine}) == Values{5});
}

TEST_CASE("reference_network: pooling rounded up") {
  Pool pool = pool_of(PoolKind::max, 2, 2, 0);
  pool.round_up = true;
  CHECK(run(pool, {kNine}) == Values{5, 6, 8, 9});
  pool.kind = PoolKind::average;
  CHECK(run(pool, {kNine}) == Values{3, 4.5, 7.5, 9});
  // What lies beyond the image and its padding does not count, padding or not.
  pool.count_padding = true;
  CHECK(run(pool, {kNine}) == Values{3, 4.5, 7.5, 9});
}

TEST_CASE("reference_network: average pooling with padding") {
  Pool pool = pool_of(PoolKind::average, 3, 2, 1);
  CHECK(run(pool, {kNine}) == Values{3, 4, 6, 7});
  pool.count_padding = true;
  check_near(run(pool, {kNine}), {12.0 / 9, 16.0 / 9, 24.0 / 9, 28.0 / 9});
  // One side alone, rounded up: the last window holds one column of padding and one beyond it.
  pool = pool_of(PoolKind::average, 1, 2, 0);
  pool.kernel_w = 4;
  pool.pad.right = 1;
  pool.round_up = pool.count_padding = true;
  const Input row = {{1, 1, 5}, {1, 2, 3, 4, 8}};
  check_near(run(pool, {row}), {10.0 / 4, 15.0 / 4});
  pool.stride_w = 3;
  check_near(run(pool, {row}), {10.0 / 4, 12.0 / 3});
}

TEST_CASE("reference_network: dilated pooling") {
  Pool pool = pool_of(PoolKind::average, 2, 1, 0);
  pool.dilation_h = pool.dilation_w = 2;
  CHECK(run(pool, {kNine}) == Values{5});
  pool.dilation_h = 1;
  CHECK(run(pool, {kNine}) == Values{3.5, 6.5});
}

TEST_CASE("reference_network: global average pooling") {
  CHECK(run(GlobalAveragePool{}, {{{2, 1, 2}, {1, 2, 3, 4, 5, 6, 7, 9}}}, 2) == Values{1.5, 3.5, 5.5, 8});
}

TEST_CASE("reference_network: LRN at the edges of the channels") {
  const Input x = {{4, 1, 1}, {1, 2, 3, 4}};
  // size 3: 1+4, 1+4+9, 4+9+16, 9+16
  Lrn lrn{.size = 3, .alpha = 3, .beta = 1, .bias = 2};
  check_near(run(lrn, {x}), {1.0 / 7, 2.0 / 16, 3.0 / 31, 4.0 / 27});
  // An even size reaches one channel further up: 1+4, 4+9, 9+16, 16
  lrn.size = 2;
  lrn.alpha = 2;
  check_near(run(lrn, {x}), {1.0 / 7, 2.0 / 15, 3.0 / 27, 4.0 / 18});
  lrn.beta = 0.5F;
  check_near(run(lrn, {x}), {1 / std::sqrt(7), 2 / std::sqrt(15), 3 / std::sqrt(27), 4 / std::sqrt(18)});
  // Channels of a pixel only, of an image only.
  check_near(run(Lrn{5, 5, 1, 1}, {{{2, 1, 2}, {1, 0, 2, 3, 1, 1, 1, 1}}}, 2),
             {1.0 / 6, 0, 2.0 / 6, 3.0 / 10, 1.0 / 3, 1.0 / 3, 1.0 / 3, 1.0 / 3});
}

TEST_CASE("reference_network: softmax of flat values and of channels") {
  const double e = std::exp(1.0);
  check_near(run(Softmax{}, {{{2}, {1, 0, 1000, 1001}}}, 2), {e / (1 + e), 1 / (1 + e), 1 / (1 + e), e / (1 + e)});
  check_near(run(Softmax{}, {{{2, 1, 2}, {1, 5, 0, 5}}}), {e / (1 + e), 0.5, 1 / (1 + e), 0.5});
}

TEST_CASE("reference_network: concat along channels and along columns") {
  const Input a = {{1, 1, 2}, {1, 2, 11, 12}}, b = {{2, 1, 2}, {3, 4, 5, 6, 13, 14, 15, 16}};
  CHECK(run(Concat{0}, {a, b}, 2) == Values{1, 2, 3, 4, 5, 6, 11, 12, 13, 14, 15, 16});
  const Input c = {{2, 1, 1}, {7, 8}}, d = {{2, 1, 2}, {3, 4, 5, 6}};
  CHECK(run(Concat{2}, {c, d, c}) == Values{7, 3, 4, 7, 8, 5, 6, 8});
}

TEST_CASE("reference_network: views of channels") {
  const Input x = {{3, 1, 2}, {1, 2, 3, 4, 5, 6, 11, 12, 13, 14, 15, 16}};
  CHECK(run(ChannelView{1, 2}, {x}, 2) == Values{3, 4, 5, 6, 13, 14, 15, 16});
}

TEST_CASE("reference_network: padding with a value") {
  CHECK(run(Pad{{1, 0, 0, 2}, 5}, {{{2, 1, 1}, {1, 2}}}) == Values{5, 5, 5, 1, 5, 5, 5, 5, 5, 2, 5, 5});
}

TEST_CASE("reference_network: picks, forwards, backwards and of one element") {
  const Input x = {{2, 1, 3}, {1, 2, 3, 4, 5, 6, 11, 12, 13, 14, 15, 16}};
  CHECK(run(Pick{{{1, 1, 1}, {0, 1, 1}, {0, 2, 2}}}, {x}, 2) == Values{4, 6, 14, 16});
  const Input one = {{2, 1, 3}, {1, 2, 3, 4, 5, 6}};
  CHECK(run(Pick{{{1, -1, 2}, {0, 1, 1}, {2, -1, 2}}}, {one}) == Values{6, 5, 3, 2});
  CHECK(run(Pick{{{1, -1, 2}, {0, 1, 1}, {2, -1, 2}}, {2, 1, 0}}, {one}) == Values{6, 3, 5, 2});
  CHECK(run(Pick{{{0, 1, 2}, {0, 0, 2}, {1, 0, 2}}}, {one}) == Values{2, 2, 2, 2, 5, 5, 5, 5});
}

TEST_CASE("reference_network: weighted sums of rows and columns, and what lies outside") {
  const Input x = {{1, 2, 3}, {1, 2, 3, 4, 5, 6, 11, 12, 13, 14, 15, 16}};
  const Taps first{1, {0}, {1}}, both{2, {0, 1}, {0.5F, 2}}, reversed{1, {2, 1, 0}, {1, 1, 1}};
  CHECK(run(Resample{first, reversed}, {x}, 2) == Values{3, 2, 1, 13, 12, 11});
  const Input one = {{1, 2, 3}, {1, 2, 3, 4, 5, 6}};
  CHECK(run(Resample{both, reversed}, {one}) == Values{13.5, 11, 8.5});
  CHECK(run(Resample{both, both}, {one}) == Values{0.25 + 2 + 4 + 20});
  CHECK(run(Resample{first, {1, {-1, 1}, {1, 1}}, 7}, {one}) == Values{7, 2});
}

TEST_CASE("reference_network: transpose, reshape and identity") {
  const Input x = {{2, 1, 3}, {1, 2, 3, 4, 5, 6, 11, 12, 13, 14, 15, 16}};
  CHECK(run(Transpose{{2, 1, 0}}, {x}, 2) == Values{1, 4, 2, 5, 3, 6, 11, 14, 12, 15, 13, 16});
  // {2, 3, 4} to {4, 2, 3}
  Input y = {{2, 3, 4}, {}};
  for (int i = 0; i < 24; ++i) y.values.push_back(static_cast<float>(i));
  const Values turned = run(Transpose{{2, 0, 1}}, {y});
  CHECK(turned[0] == 0);
  CHECK(turned[1] == 4);
  CHECK(turned[3] == 12);
  CHECK(turned[6] == 1);
  CHECK(run(Reshape{{6}}, {x}, 2) == Values{1, 2, 3, 4, 5, 6, 11, 12, 13, 14, 15, 16});
  CHECK(run(Identity{}, {x}, 2) == Values{1, 2, 3, 4, 5, 6, 11, 12, 13, 14, 15, 16});
}

TEST_CASE("reference_network: every tensor, a tensor with two readers, two outputs") {
  GraphBuilder graph;
  const int x = graph.input({2}, "x");
  const int twice = graph.add("twice", ChannelAffine{{2, 2}, {0, 0}}, {x});
  const int relu = graph.add("relu", Elementwise{}, {twice});
  const int sum = graph.add("sum", Combine{}, {relu, twice});
  const int unread = graph.add("unread", Identity{}, {x});
  const Network network = graph.finish({sum, relu});
  REQUIRE(verify(network).empty());
  const std::vector<float> input = {-1, 3};
  const auto outputs = run_reference(network, 1, {input});
  CHECK(outputs == std::vector<Values>{{-2, 12}, {0, 6}});
  const auto tensors = burin_test::reference_tensors(network, 1, {input});
  CHECK(tensors[x] == Values{-1, 3});
  CHECK(tensors[twice] == Values{-2, 6});
  CHECK(tensors[relu] == Values{0, 6});
  CHECK(tensors[sum] == Values{-2, 12});
  CHECK(tensors[unread] == Values{-1, 3});
}

TEST_CASE("reference_network: inputs of the wrong size are refused") {
  GraphBuilder graph;
  const int x = graph.input({2}, "x");
  const Network network = graph.finish({graph.add("relu", Elementwise{}, {x})});
  const std::vector<float> three = {1, 2, 3};
  CHECK_THROWS(run_reference(network, 1, {three}));
  CHECK_THROWS(run_reference(network, 1, {}));
}
