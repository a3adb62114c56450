// Activations and sums: what becomes part of a layer, and what must stay.
#include "test/ir/own_function.h"
#include "test/network/pass_checks.h"

using namespace burin;
using namespace burin_test;

TEST_CASE("fuse_epilogues: activations") {
  const auto fused = [](const Elementwise& function) {
    GraphBuilder graph;
    const int y = graph.convolution(conv("c", 2, 2, {.bias = {-9, 1}}), {graph.input({2, 4, 4})});
    const Network result = after(fuse_epilogues, graph.finish({graph.add("f", function, {y})}), 1);
    CHECK(kinds(result) == "convolution");
    CHECK(result.tensors[static_cast<std::size_t>(result.outputs[0])].name == "f_out");
    return result.layers[0].shape.epilogue;
  };
  CHECK(fused({ElementFunction::relu}).function == function_of(Activation::relu));
  CHECK(fused({ElementFunction::clip, 0, 6}).function == function_of(Activation::relu6));
  CHECK(fused({ElementFunction::clip, 0, kInfinity}).function == function_of(Activation::relu));
  CHECK(fused({ElementFunction::clip, -kInfinity, 1}).function ==
        Elementwise{ElementFunction::clip, std::numeric_limits<float>::lowest(), 1});
  for (std::size_t i = 0; i < names_of(ElementFunction{}).names.size(); ++i) {
    Elementwise function{static_cast<ElementFunction>(i), 0.25F, 0.5F};
    if (function.is_user()) function = own_element();
    CHECK(fused(function).function == function);
  }
}

TEST_CASE("fuse_epilogues: a second function, or of what others read, stays") {
  const auto network = [](const Elementwise& function, const ConvOptions& options, int variant) {
    GraphBuilder graph;
    const int y = graph.convolution(conv("c", 2, 2, options), {graph.input({2, 4, 4})});
    std::vector<int> outputs = {graph.add("f", function, {y})};
    if (variant == 1) outputs.push_back(y);
    if (variant == 2) outputs.push_back(graph.add("pool", GlobalAveragePool{}, {y}));
    return graph.finish(outputs);
  };
  unchanged(fuse_epilogues, network({ElementFunction::relu}, {.activation = Activation::silu}, 0));
  unchanged(fuse_epilogues, network({ElementFunction::relu}, {}, 1));
  unchanged(fuse_epilogues, network({ElementFunction::relu}, {}, 2));
}

TEST_CASE("fuse_epilogues: a linear layer") {
  GraphBuilder graph;
  const Linear linear{.in_features = 2, .out_features = 2, .weights = {1, -2, 3, -4}, .bias = {}};
  const int y = graph.add("fc", linear, {graph.input({2})});
  const Network result = after(fuse_epilogues, graph.finish({graph.add("relu", Elementwise{}, {y})}), 1);
  CHECK(std::get<Linear>(result.operators[0].kind).function == function_of(Activation::relu));
}

TEST_CASE("fuse_epilogues: a function goes into a sum, a product or a normalization before it") {
  const Elementwise swish{ElementFunction::hard_swish};
  const auto network = [&](const OperatorKind& kind, bool read_twice) {
    GraphBuilder graph;
    const int x = graph.input({2, 4, 4}), two = std::holds_alternative<Combine>(kind) ? 2 : 1;
    const int y = graph.add("y", kind, std::vector<int>(static_cast<std::size_t>(two), x));
    std::vector<int> outputs = {graph.add("f", swish, {y})};
    if (read_twice) outputs.push_back(graph.add("pool", GlobalAveragePool{}, {y}));
    return graph.finish(outputs);
  };
  for (const OperatorKind& kind : std::initializer_list<OperatorKind>{
           kAffine2, Combine{}, Combine{Combination::multiply}, Normalize{Normalization::deviation, {0}, 0.1F},
           Reduce{Statistic::sum, {0}}}) {
    const Network result = after(fuse_epilogues, network(kind, false), 1);
    REQUIRE(result.operators.size() == 1);
    REQUIRE(then_of(result.operators[0].kind) != nullptr);
    CHECK(then_of(result.operators[0].kind)->function == ElementFunction::hard_swish);
    CHECK_THAT(describe(result, result.operators[0]), Contains("then hard_swish"));
    unchanged(fuse_epilogues, network(kind, true));
  }
  unchanged(fuse_epilogues, network(ChannelAffine{{1, 2}, {0, 1}, Elementwise{}}, false));  // it has one already
}

TEST_CASE("fuse_epilogues: a sum that has a function becomes a residual") {
  const auto network = [](const Elementwise& function) {
    GraphBuilder graph;
    const int x = graph.input({2, 4, 4});
    const int y = graph.convolution(conv("c", 2, 2), {x});
    return graph.finish({graph.add("sum", Combine{Combination::add, function}, {y, x})});
  };
  const Network result = after(fuse_epilogues, network({ElementFunction::leaky_relu, 0.25F, 0}), 1);
  CHECK(kinds(result) == "convolution");
  CHECK(result.layers[0].shape.epilogue.residual);
  CHECK(result.layers[0].shape.epilogue.function == function_of(Activation::leaky_relu, 0.25F));
}

TEST_CASE("fuse_epilogues: a sum and what follows it") {
  GraphBuilder graph;
  const int x = graph.input({2, 4, 4});
  const int y = graph.convolution(conv("c", 2, 2, {.kernel = 3, .pad = 1, .bias = {-9, 9}}), {x});
  const int sum = graph.add("sum", Combine{}, {x, y});
  const Network result = after(fuse_epilogues, graph.finish({graph.add("relu", Elementwise{}, {sum})}), 2);
  CHECK(kinds(result) == "convolution");
  CHECK(result.layers[0].shape.epilogue == Epilogue{true, true, function_of(Activation::relu)});
  CHECK(result.operators[0].inputs == std::vector<int>{0, 0});
}

TEST_CASE("fuse_epilogues: of two convolutions the later takes the sum, where the sum stood") {
  GraphBuilder graph;
  const int x = graph.input({2, 4, 4});
  const int a = graph.convolution(conv("a", 2, 2), {x}), b = graph.convolution(conv("b", 2, 2), {x});
  Network result = after(fuse_epilogues, graph.finish({graph.add("sum", Combine{}, {b, a})}), 1);
  CHECK(kinds(result) == "convolution convolution");
  CHECK(result.operators[1].name == "b");
  // The convolution comes first; it has to wait for the pool.
  GraphBuilder other;
  const int y = other.input({2, 4, 4});
  const int c = other.convolution(conv("c", 2, 2), {y});
  const int pool = other.add("pool", Pool{}, {y});
  result = after(fuse_epilogues, other.finish({other.add("sum", Combine{}, {c, pool})}), 1);
  CHECK(kinds(result) == "pool convolution");
}

TEST_CASE("fuse_epilogues: a sum behind a function is a residual that is added last") {
  const auto network = [](std::optional<Elementwise> then, bool other_is_plain) {
    GraphBuilder graph;
    const int x = graph.input({2, 4, 4});
    const int a = graph.convolution(conv("a", 2, 2), {x});
    const int b = graph.convolution(conv("b", 2, 2, {.activation = Activation::silu}), {x});
    return graph.finish({graph.add("sum", Combine{Combination::add, then}, {other_is_plain ? a : x, b})});
  };
  Network result = after(fuse_epilogues, network({}, false), 1);
  const Epilogue& last = result.layers.back().shape.epilogue;
  CHECK((last.residual && last.residual_last && last.function == function_of(Activation::silu)));
  CHECK(describe(result, result.operators.back()).ends_with("silu, residual"));
  // A function of the sum: only a convolution without one can take it.
  unchanged(fuse_epilogues, network(Elementwise{}, false));
  result = after(fuse_epilogues, network(Elementwise{}, true), 1);
  CHECK(result.operators.back().name == "a");
  CHECK_FALSE(result.layers[0].shape.epilogue.residual_last);
}

TEST_CASE("fuse_epilogues: no pool goes behind a residual that is added last") {
  GraphBuilder graph;
  const int x = graph.input({2, 4, 4});
  ConvLayer layer = conv("c", 2, 2, {.activation = Activation::silu});
  layer.shape.epilogue.residual = layer.shape.epilogue.residual_last = true;
  const int y = graph.convolution(layer, {x, x});
  const Network network = graph.finish({graph.add("pool", Pool{.kernel_h = 2, .kernel_w = 2}, {y})});
  CHECK(fuse_pools(network, {}).changes == 0);
}

TEST_CASE("fuse_epilogues: sums that stay") {
  const auto network = [](const ConvOptions& options, int variant) {
    GraphBuilder graph;
    const int x = graph.input({2, 4, 4});
    std::vector<int> inputs = {x};
    if (options.residual) inputs.push_back(x);
    const int y = graph.convolution(conv("c", 2, 2, options), inputs);
    if (variant == 1) return graph.finish({graph.add("sum", Combine{}, {y, y})});
    if (variant == 2) return graph.finish({graph.add("sum", Combine{}, {x, y}), y});
    if (variant == 3)
      return graph.finish({graph.add("sum", Combine{}, {y, graph.add("pool", GlobalAveragePool{}, {x})})});
    if (variant == 4) return graph.finish({graph.add("product", Combine{Combination::multiply}, {x, y})});
    return graph.finish({graph.add("sum", Combine{}, {x, y})});
  };
  unchanged(fuse_epilogues, network({.residual = true}, 0));
  for (int variant = 1; variant <= 4; ++variant) unchanged(fuse_epilogues, network({}, variant));
}
