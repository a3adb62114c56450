// How far an operator's outputs may be off.

#include <cmath>
#include <limits>

#include "compiler/network/operator_error.h"
#include "compiler/network/reference_network.h"
#include "test/catch.h"
#include "test/ir/own_function.h"
#include "test/ir/small_network.h"
#include "test/thrown.h"

using namespace burin;
using burin_test::error_of;
using burin_test::GraphBuilder;
using burin_test::own_element;
using burin_test::own_scale;
using burin_test::own_sigmoid;

namespace {

// All inputs have the shape, or those behind the first the other one.
std::vector<double> tolerances_of(OperatorKind kind, const std::vector<std::int64_t>& shape,
                                  const std::vector<std::vector<float>>& inputs, const Arithmetic& arithmetic = {},
                                  const std::vector<std::int64_t>& others = {}) {
  GraphBuilder graph;
  std::vector<int> tensors;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    tensors.push_back(graph.input(i == 0 || others.empty() ? shape : others));
  const int output = graph.add("op", std::move(kind), tensors);
  const Network network = graph.finish({output});
  const std::vector<std::span<const float>> spans(inputs.begin(), inputs.end());
  const ExpectedOutputs expected = expected_outputs(network, network.operators[0], 1, spans, arithmetic);
  CHECK(expected.values == run_reference(network, 1, spans)[0]);
  return expected.tolerances;
}

// In units of what a sum of so many terms allows for each of its magnitude.
std::vector<double> in_units(std::vector<double> tolerances, int terms) {
  for (double& value : tolerances) value /= kToleranceFactor * std::ldexp(1.0, -23) * std::sqrt(terms + 1.0);
  return tolerances;
}

Pool pool_of(PoolKind kind) {
  Pool pool;
  pool.kind = kind;
  pool.kernel_h = pool.kernel_w = 2;
  return pool;
}

Linear linear_of(std::vector<float> weights, int in) {
  Linear linear;
  linear.in_features = in;
  linear.out_features = static_cast<int>(weights.size()) / in;
  linear.weights = std::move(weights);
  linear.bias.assign(static_cast<std::size_t>(linear.out_features), -1.0F);
  return linear;
}

}  // namespace

TEST_CASE("operator_error: what only moves or chooses values is exact") {
  constexpr double kExact = std::numeric_limits<float>::min();
  const std::vector<std::vector<float>> input = {{1, -2, 3, -4}};
  CHECK(tolerances_of(pool_of(PoolKind::max), {1, 2, 2}, input) == std::vector<double>{kExact});
  CHECK(tolerances_of(Reshape{{4}}, {1, 2, 2}, input) == std::vector<double>(4, kExact));
  CHECK(tolerances_of(Elementwise{ElementFunction::relu, 0, 0}, {4}, input) == std::vector<double>(4, kExact));
}

TEST_CASE("operator_error: sums scale with their terms without signs") {
  CHECK(in_units(tolerances_of(pool_of(PoolKind::average), {1, 2, 2}, {{1, -2, 3, -4}}), 4)[0] == Approx(2.5));
  const std::vector<double> sums = in_units(tolerances_of(Combine{}, {2}, {{1, -2}, {-1, 5}}), 1);
  CHECK(sums[0] == Approx(2));
  CHECK(sums[1] == Approx(7));
  CHECK(in_units(tolerances_of(ChannelAffine{{-2}, {-3}}, {1, 1, 2}, {{1, -1}}), 1)[1] == Approx(5));
  // With a function: what it makes of that at most, and its own.
  const auto ends_with = [&](const Elementwise& then) {
    return in_units(tolerances_of(ChannelAffine{{-2}, {-3}, then}, {1, 1, 2}, {{1, -1}}), 1)[1];
  };
  CHECK(ends_with({ElementFunction::relu}) < 1e-20);  // of -1, which nothing brings above zero
  CHECK(ends_with({ElementFunction::leaky_relu, -0.5F}) == Approx(5 * 0.5 + 0.5));
  const double y = 1 / (1 + std::exp(1.0));
  CHECK(ends_with({ElementFunction::sigmoid}) == Approx(5 * y * (1 - y) + y * (2 - y)).epsilon(1e-4));
  CHECK(ends_with({ElementFunction::hard_swish}) == Approx(5.0 / 6 + 1).epsilon(1e-4));
  const std::vector<double> linear = in_units(tolerances_of(linear_of({1, -2, 0, 4}, 2), {2}, {{3, -1}}), 2);
  CHECK(linear[0] == Approx(3 + 2 + 1));
  CHECK(linear[1] == Approx(4 + 1));
}

TEST_CASE("operator_error: of products, magnitudes of their terms") {
  const std::vector<double> product = in_units(tolerances_of(MatMul{}, {1, 2}, {{3, -1}, {2, 4}}, {}, {2, 1}), 2);
  CHECK(product[0] == Approx(6 + 4));
  MatMul by;
  by.constant = ConstantOperand{{2, 1}, {-2, 4}};
  CHECK(in_units(tolerances_of(by, {1, 2}, {{3, -1}}), 2)[0] == Approx(6 + 4));
  by.constant_first = true;
  CHECK(in_units(tolerances_of(by, {1, 2}, {{3, -1}}), 1)[0] == Approx(6));
}

TEST_CASE("operator_error: of squeeze-and-excitation, what each layer adds up") {
  const std::vector<double> squeezed = in_units(tolerances_of(Squeeze{1, {-3}, 1, 2}, {1, 1, 2}, {{1, -2}}), 3);
  CHECK(squeezed[0] == Approx(3 * 1.5));
  // Of the parts 1 and -3 their sum may be off by 4, which the second layer doubles, as it does their sum, 2.
  const Excite excite{{}, {}, linear_of({-2}, 1)};
  const auto tolerances = tolerances_of(excite, {1, 1, 2}, {{5, -7}, {1, -3}}, {}, {2, 1});
  const double gate = 2 * (2 + 4), value = 4;
  CHECK(in_units(tolerances, 2)[0] == Approx(5 * gate + 5 * value));
  CHECK(in_units(tolerances, 2)[1] == Approx(7 * gate + 7 * value));
}

TEST_CASE("operator_error: weights that are stored in FP16 err by their rounding") {
  const float lost = std::ldexp(1.0F, -12), tiny = std::ldexp(1.0F, -30);
  Linear linear = linear_of({1 + lost, -2, tiny, 4}, 2);
  const std::vector<float> input = {-3, 8};
  const auto more = [&](std::size_t output) {
    return tolerances_of(linear, {2}, {input}, {.weights = FactorType::f16})[output] -
           tolerances_of(linear, {2}, {input})[output];
  };
  CHECK(more(0) == Approx(3.0 * lost));
  CHECK(more(1) == Approx(3.0 * tiny).epsilon(0.01));
  linear.function = function_of(Activation::leaky_relu, -2);  // of -20 and 31
  CHECK(more(0) == Approx(6.0 * lost));
  linear.function = function_of(Activation::sigmoid);
  CHECK(more(0) < 1e-8 * lost);
  linear.function = function_of(Activation::relu);
  CHECK(more(0) == 0);
}

TEST_CASE("operator_error: a bounded function behind large values is no further off than its range") {
  for (const ElementFunction function : {ElementFunction::sigmoid, ElementFunction::hard_sigmoid}) {
    const Elementwise then{function, 0.2F, 0.5F};
    const double off = tolerances_of(ChannelAffine{{1e7F}, {-1e7F}, then}, {1, 1, 1}, {{1}})[0];
    CHECK(off < (function == ElementFunction::sigmoid ? 0.51 : 1.0));
    CHECK(off > 0.49);
  }
}

TEST_CASE("operator_error: functions scale with their value") {
  const auto sigmoid = in_units(tolerances_of(Elementwise{ElementFunction::sigmoid, 0, 0}, {2}, {{0, -10}}), 1);
  CHECK(sigmoid[0] == Approx(0.5));
  const double y = 1 / (1 + std::exp(10.0));
  CHECK(sigmoid[1] == Approx(y * (1 + 10 * (1 - y))));
  const auto softmax = in_units(tolerances_of(Softmax{}, {2}, {{0, 0}}), 2);
  CHECK(softmax[0] == Approx(0.5 * (1 + std::log(2.0))));
  CHECK(in_units(tolerances_of(Softmax{}, {2}, {{0, -1e4F}}), 2)[1] < 1e-30);
}

TEST_CASE("operator_error: no function but those that are steep is off by more than its argument allows") {
  for (int i = 0; i < static_cast<int>(names_of(ElementFunction{}).names.size()); ++i) {
    Elementwise function{static_cast<ElementFunction>(i), 0.5F, 1};
    if (function.is_user()) function = own_element();
    INFO(to_string(function.function));
    using enum ElementFunction;
    const bool to_one = function.function == asin || function.function == acos || function.function == atanh;
    std::vector<float> values = {0.7F, 1.3F, 2.6F};
    if (to_one) values = {0.3F, 0.7F, -0.9F};
    if (function.function == acosh) values = {1.1F, 1.3F, 2.6F};
    const std::vector<double> alone = tolerances_of(function, {3}, {values});
    const std::vector<double> behind = tolerances_of(ChannelAffine{{1}, {0}, function}, {1, 1, 3}, {values});
    for (std::size_t j = 0; j < alone.size(); ++j) {
      CHECK(alone[j] < 1e-4);
      CHECK(behind[j] >= alone[j]);
      CHECK(behind[j] < 1e-4);  // none of these is near a step
    }
  }
  // Near a step it is as large as that.
  CHECK(tolerances_of(ChannelAffine{{1}, {0}, Elementwise{ElementFunction::floor}}, {1, 1, 1}, {{2}})[0] ==
        Approx(1).epsilon(1e-3));
  const Elementwise only_two{ElementFunction::within, 2, 2};
  for (const float near : {2.0F, 2.0F + 0x1p-22F, 2.0F - 0x1p-23F}) {
    CHECK(tolerances_of(ChannelAffine{{1}, {0}, only_two}, {1, 1, 1}, {{near}})[0] == Approx(1).epsilon(1e-3));
  }
}

TEST_CASE("operator_error: a user's function is off by what floats make of it, and of what it is given") {
  const double alone = tolerances_of(own_element(), {1}, {{0.7F}})[0];
  const double known = tolerances_of(Elementwise{ElementFunction::sigmoid}, {1}, {{0.7F}})[0];
  CHECK(alone > known / 4);
  CHECK(alone < known * 8);
  // Of sums that cancel floats make little that is right.
  Combine scale{Combination::user};
  scale.user = own_scale();
  const std::vector<double> both = tolerances_of(scale, {2}, {{3, 3}, {2, -0.999F}});
  CHECK(both[0] < 9 * 0x1p-17);
  CHECK(both[1] < both[0]);
  CHECK(both[1] > 0.003 * 0x1p-22);
  // Where it cannot be computed on the host, an error says what would help.
  UserFunction unknown = *own_sigmoid();
  unknown.reference = nullptr;
  const Elementwise without{.function = ElementFunction::user, .user = std::make_shared<UserFunction>(unknown)};
  CHECK(error_of([&] { tolerances_of(without, {1}, {{0.7F}}); }).find("--operator my::Sigmoid=FILE") !=
        std::string::npos);
}

TEST_CASE("operator_error: combinations, statistics and normalizations") {
  const std::vector<std::vector<float>> two = {{5, -2}, {3, 4}};
  const auto of = [&](Combination combination) { return in_units(tolerances_of(Combine{combination}, {2}, two), 1); };
  CHECK(of(Combination::subtract)[0] == Approx(8));
  CHECK(of(Combination::divide)[0] == Approx(2 * 5.0 / 3));
  CHECK(of(Combination::larger)[0] < 1e-20);
  CHECK(of(Combination::prelu)[1] == Approx(8));
  const std::vector<std::vector<float>> four = {{1, -2, 3, -4}};
  CHECK(in_units(tolerances_of(Reduce{Statistic::sum, {0}}, {4}, four), 4)[0] == Approx(10));
  CHECK(tolerances_of(Reduce{Statistic::largest, {0}}, {4}, four)[0] < 1e-30);
  CHECK(in_units(tolerances_of(Reduce{Statistic::product, {0}}, {4}, four), 4)[0] == Approx(24));
  // Values that hardly deviate from a large mean are what rounding makes of them.
  const auto normal = [&](float mean) {
    return tolerances_of(Normalize{Normalization::deviation, {0}}, {2}, {{mean - 1, mean + 1}})[0];
  };
  CHECK(normal(1000) > 100 * normal(1));
}

TEST_CASE("operator_error: the deepest path of reductions") {
  GraphBuilder graph;
  const int x = graph.input({2});
  const int a = graph.add("a", linear_of({1, 0, 1, 1}, 2), {x});  // 2 nonzeros
  const int b = graph.add("b", linear_of({1, 0, 0, 1}, 2), {x});  // 1
  const int s = graph.add("s", Combine{}, {a, b});
  const Network network = graph.finish({s});
  CHECK(longest_reduction(network, network.operators[0]) == 2);
  CHECK(longest_reduction(network, network.operators[1]) == 1);
  CHECK(deepest_reduction(network) == (2 + 1) + (1 + 1));
  CHECK(network_tolerance(16, 2.0) == kNetworkToleranceFactor * std::ldexp(1.0, -23) * 4 * 2);
  CHECK(network_tolerance(16, 0) > 0);
  CHECK(network_tolerance(16, 2.0, 3 * std::ldexp(1.0, -11)) ==
        Approx(kNetworkToleranceFactor * (std::ldexp(4.0, -23) + std::ldexp(3.0, -11)) * 2).epsilon(1e-12));
}

TEST_CASE("operator_error: what ReLUs and maximum pools leave is measured by what they chose from") {
  GraphBuilder graph;
  const int x = graph.input({1, 4, 4});
  const int scaled = graph.add("scaled", ChannelAffine{{2.0F}, {1.0F}, {}}, {x});
  const int positive = graph.add("positive", Elementwise{ElementFunction::relu}, {scaled});
  const int most = graph.add("most", pool_of(PoolKind::max), {positive});
  const int mean = graph.add("mean", pool_of(PoolKind::average), {most});
  const Network network = graph.finish({mean});
  CHECK(chosen_from(network, most) == scaled);
  CHECK(chosen_from(network, positive) == scaled);
  CHECK(chosen_from(network, scaled) == scaled);
  CHECK(chosen_from(network, mean) == mean);
  CHECK(chosen_from(network, x) == x);
}
