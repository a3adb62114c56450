// Channels that are constant or that nobody reads: which go, and which must stay.
#include "test/ir/own_function.h"
#include "test/network/pass_checks.h"

using namespace burin;
using namespace burin_test;

TEST_CASE("remove_dead_channels: a filter without nonzeros becomes part of the next bias") {
  GraphBuilder graph;
  const int x = graph.input({2, 4, 4});
  const int y = graph.convolution(conv("a", 2, 3, {.kernel = 3, .pad = 1, .bias = {1, 2, 3}}, {1}), {x});
  const int z = graph.add("relu", Elementwise{}, {y});
  const Network result = after(remove_dead_channels, graph.finish({graph.convolution(conv("b", 3, 2), {z})}), 2);
  CHECK(result.layers[0].shape.out_channels == 2);
  CHECK(result.layers[0].bias == std::vector<float>{1, 3});
  CHECK(result.layers[1].shape.in_channels == 2);
  CHECK(result.layers[1].weights == std::vector<float>{0.5F, 1, 0.75F, 1.25F});
  CHECK(result.layers[1].bias == std::vector<float>{2 * 0.75F, 2 * 1});
}

TEST_CASE("remove_dead_channels: a constant goes through functions of sums and normalizations") {
  GraphBuilder graph;
  const int x = graph.input({2, 4, 4});
  const auto constant = [&](const char* name) {  // channel 1 is 2
    return graph.convolution(conv(name, 2, 2, {.kernel = 3, .pad = 1, .bias = {1, 2}}, {1}), {x});
  };
  const int sum = graph.add("sum", Combine{Combination::add, Elementwise{ElementFunction::clip, 0, 3}},
                            {constant("a"), constant("b")});
  const int y =
      graph.add("bn", ChannelAffine{{1, -2}, {0, 4}, Elementwise{ElementFunction::leaky_relu, 0.5F, 0}}, {sum});
  const Network result = after(remove_dead_channels, graph.finish({graph.convolution(conv("c", 2, 1), {y})}), 3);
  // min(2 + 2, 3) = 3, and 3 * -2 + 4 = -2, of which half is left.
  REQUIRE(result.layers[2].bias.size() == 1);
  CHECK(result.layers[2].bias[0] == Approx(-1 * conv("c", 2, 1).weights[1]));
}

TEST_CASE("remove_dead_channels: what a user's function makes of a constant nobody computes") {
  for (const bool fused : {false, true}) {
    GraphBuilder graph;
    ConvLayer first = conv("a", 2, 3, {.bias = {1, 2, 3}}, {1});
    if (fused) first.shape.epilogue.function = own_element();
    int y = graph.convolution(std::move(first), {graph.input({2, 4, 4})});
    if (!fused) y = graph.add("own", own_element(), {y});
    Combine scale{Combination::user};
    scale.user = own_scale();
    const int z = graph.add("scale", scale, {y, y});
    unchanged(remove_dead_channels, graph.finish({graph.convolution(conv("b", 3, 2), {z})}));
  }
}

TEST_CASE("remove_dead_channels: with padding only zeros are absorbed") {
  const auto network = [](float bias) {
    GraphBuilder graph;
    const int y = graph.convolution(conv("a", 1, 2, {.bias = {1, bias}, .activation = Activation::relu}, {1}),
                                    {graph.input({1, 4, 4})});
    return graph.finish({graph.convolution(conv("b", 2, 1, {.kernel = 3, .pad = 1}), {y})});
  };
  unchanged(remove_dead_channels, network(2));
  CHECK(after(remove_dead_channels, network(-2), 2).layers[0].shape.out_channels == 1);
}

TEST_CASE("remove_dead_channels: through pools, padding and concat") {
  GraphBuilder graph;
  const int x = graph.input({1, 6, 6});
  int a = graph.convolution(conv("a", 1, 3, {}, {0}), {x});
  a = graph.add("pool", Pool{.kind = PoolKind::average, .kernel_h = 3, .kernel_w = 3, .pad = {1, 1, 1, 1}}, {a});
  const int b = graph.add("max", Pool{.kernel_h = 3, .kernel_w = 3, .pad = {1, 1, 1, 1}},
                          {graph.convolution(conv("b", 1, 2, {}, {1}), {x})});
  const int joined = graph.add("pad", Pad{{1, 1, 1, 1}, 0}, {graph.add("concat", Concat{0}, {a, b})});
  const Network result =
      after(remove_dead_channels, graph.finish({graph.convolution(conv("c", 5, 2, {.kernel = 3}), {joined})}), 4);
  CHECK(result.layers[0].shape.out_channels == 2);
  CHECK(result.layers[1].shape.out_channels == 1);
  CHECK(result.layers[2].shape.in_channels == 3);
}

TEST_CASE("remove_dead_channels: parts of a concat keep multiples of eight channels where they had such") {
  GraphBuilder graph;
  const int x = graph.input({1, 4, 4});
  const int a = graph.convolution(conv("a", 1, 16, {}, {0, 1, 2, 3, 4, 9}), {x});
  const int b = graph.convolution(conv("b", 1, 16, {}, {1, 2, 3, 4, 5, 6, 7, 8, 9}), {x});
  const int c = graph.convolution(conv("c", 1, 9, {}, {2}), {x});
  const int joined = graph.add("concat", Concat{0}, {a, b, c});
  const Network result = remove_dead_channels(graph.finish({graph.convolution(conv("d", 41, 2), {joined})})).network;
  REQUIRE(verify(result).empty());
  CHECK(result.layers[0].shape.out_channels == 16);
  CHECK(result.layers[1].shape.out_channels == 8);
  CHECK(result.layers[2].shape.out_channels == 8);
  CHECK(result.layers[3].shape.in_channels == 32);
}

TEST_CASE("remove_dead_channels: through views, and what no view shows") {
  GraphBuilder graph;
  const int y = graph.convolution(conv("a", 1, 6, {}, {2}), {graph.input({1, 4, 4})});
  const int low = graph.add("low", ChannelView{0, 2}, {y}), high = graph.add("high", ChannelView{2, 3}, {y});
  const Network network = graph.finish({graph.convolution(conv("b", 2, 1), {low}),  //
                                        graph.convolution(conv("c", 3, 1), {high})});
  // Channel 2 is zero, channel 5 has no reader.
  const Network result = after(remove_dead_channels, network, 3);
  CHECK(result.layers[0].shape.out_channels == 4);
  const auto& view = std::get<ChannelView>(result.operators[2].kind);
  CHECK(view.begin == 2);
  CHECK(view.channels == 2);
  CHECK(result.layers[2].shape.in_channels == 2);
}

TEST_CASE("remove_dead_channels: what nobody reads goes, back to the first layer") {
  GraphBuilder graph;
  int y = graph.convolution(conv("a", 1, 3), {graph.input({1, 4, 4})});
  ConvLayer blind = conv("b", 3, 2);  // does not read channel 2
  blind.weights[2] = blind.weights[5] = 0;
  y = graph.convolution(
      blind, {graph.add("relu", Elementwise{}, {graph.add("bn", ChannelAffine{{1, 2, 3}, {1, 2, 3}}, {y})})});
  const Network result = after(remove_dead_channels, graph.finish({y}), 1);
  CHECK(result.layers[0].shape.out_channels == 2);
  CHECK(std::get<ChannelAffine>(result.operators[1].kind).scale == std::vector<float>{1, 2});
  CHECK(result.layers[1].shape.in_channels == 2);
}

TEST_CASE("remove_dead_channels: a sum loses a channel when both sides do") {
  const auto network = [](std::vector<int> empty_a, std::vector<int> empty_b) {
    GraphBuilder graph;
    const int x = graph.input({1, 4, 4});
    const int a = graph.convolution(conv("a", 1, 3, {}, std::move(empty_a)), {x});
    const int b = graph.convolution(conv("b", 1, 3, {}, std::move(empty_b)), {x});
    return graph.finish({graph.convolution(conv("c", 3, 1), {graph.add("sum", Combine{}, {a, b})})});
  };
  unchanged(remove_dead_channels, network({1}, {2}));
  const Network result = after(remove_dead_channels, network({1, 2}, {2, 0}), 3);
  CHECK(result.layers[0].shape.out_channels == 2);
  CHECK(result.layers[1].shape.out_channels == 2);
}

TEST_CASE("remove_dead_channels: a residual is one side of a sum") {
  GraphBuilder graph;
  const int x = graph.input({1, 4, 4});
  const int a = graph.convolution(conv("a", 1, 3, {}, {1}), {x});
  const int b = graph.convolution(conv("b", 1, 3, {.residual = true}, {1, 2}), {x, a});
  const Network result = after(remove_dead_channels, graph.finish({graph.convolution(conv("c", 3, 1), {b})}), 3);
  CHECK(result.layers[0].shape.out_channels == 2);
  CHECK(result.layers[1].shape.out_channels == 2);
}

TEST_CASE("remove_dead_channels: depthwise channels and whole groups") {
  GraphBuilder graph;
  int y = graph.convolution(conv("a", 1, 3, {}, {0}), {graph.input({1, 4, 4})});
  y = graph.convolution(conv("depthwise", 3, 3, {.kernel = 3, .pad = 1, .groups = 3}), {y});
  const Network result = after(remove_dead_channels, graph.finish({graph.convolution(conv("c", 3, 1), {y})}), 4);
  CHECK(result.layers[1].shape.groups == 2);
  CHECK(result.layers[1].shape.in_channels == 2);

  // One dead channel of a group of two stays, two go.
  const auto grouped = [](std::vector<int> empty) {
    GraphBuilder graph;
    const int y = graph.convolution(conv("a", 1, 4, {}, std::move(empty)), {graph.input({1, 4, 4})});
    const int z = graph.convolution(conv("groups", 4, 4, {.groups = 2}), {y});
    return graph.finish({graph.convolution(conv("c", 4, 1), {z})});
  };
  CHECK(after(remove_dead_channels, grouped({2}), 1).layers[0].shape.out_channels == 4);
  const Network halved = after(remove_dead_channels, grouped({2, 3}), 8);
  CHECK(halved.layers[0].shape.out_channels == 2);
  CHECK(halved.layers[1].shape.groups == 1);
}

TEST_CASE("remove_dead_channels: flattened into a linear layer") {
  GraphBuilder graph;
  int y = graph.convolution(conv("a", 1, 3, {.bias = {1, 1, 1}}, {1}), {graph.input({1, 2, 2})});
  y = graph.add("flatten", Reshape{{12}}, {y});
  const Linear linear{.in_features = 12, .out_features = 2, .weights = std::vector<float>(24, 0.5F), .bias = {}};
  const Network result = after(remove_dead_channels, graph.finish({graph.add("fc", linear, {y})}), 5);
  const auto& shrunk = std::get<Linear>(result.operators[2].kind);
  CHECK(shrunk.in_features == 8);
  CHECK(shrunk.bias == std::vector<float>{2, 2});
  CHECK(std::get<Reshape>(result.operators[1].kind).shape == std::vector<std::int64_t>{8});
}

TEST_CASE("remove_dead_channels: inputs, outputs and what mixes channels keep theirs") {
  GraphBuilder graph;
  const int x = graph.input({2, 4, 4});
  ConvLayer first = conv("a", 2, 3, {}, {1});
  first.weights[0] = first.weights[4] = 0;  // the input's channel 0 is read by nobody
  unchanged(remove_dead_channels, graph.finish({graph.convolution(first, {x})}));
  GraphBuilder other;
  const int y = other.add("lrn", Lrn{}, {other.convolution(conv("a", 1, 3, {}, {1}), {other.input({1, 4, 4})})});
  unchanged(remove_dead_channels, other.finish({other.convolution(conv("b", 3, 1), {y})}));
}

TEST_CASE("remove_dead_channels: constants that stop being constant on their way") {
  // Channel 1 of two convolutions is 2 and 3; a third reads what `between` makes of it.
  const auto network = [](auto between) {
    GraphBuilder graph;
    const int x = graph.input({1, 4, 4});
    const int a = graph.convolution(conv("a", 1, 2, {.bias = {1, 2}}, {1}), {x});
    const int b = graph.convolution(conv("b", 1, 2, {.bias = {1, 3}}, {1}), {x});
    const int y = between(graph, a, b);
    ConvLayer last = conv("c", static_cast<int>(graph.network.tensors[static_cast<std::size_t>(y)].shape[0]), 1);
    return graph.finish({graph.convolution(last, {y}), b});
  };
  unchanged(remove_dead_channels, network([](GraphBuilder& graph, int a, int) {
              Pool pool{.kind = PoolKind::average, .kernel_h = 3, .kernel_w = 3, .pad = {1, 1, 1, 1}};
              pool.count_padding = true;
              return graph.add("pool", pool, {a});
            }));
  unchanged(remove_dead_channels,
            network([](GraphBuilder& graph, int a, int) { return graph.add("pad", Pad{{1, 1, 1, 1}, 0}, {a}); }));
  unchanged(remove_dead_channels,
            network([](GraphBuilder& graph, int a, int b) { return graph.add("concat", Concat{1}, {a, b}); }));
  unchanged(remove_dead_channels,
            network([](GraphBuilder& graph, int a, int) { return graph.add("reshape", Reshape{{1, 8, 4}}, {a}); }));
  unchanged(remove_dead_channels, network([](GraphBuilder& graph, int a, int b) {
              const int live = graph.add("live", Transpose{{0, 2, 1}}, {graph.add("lrn", Lrn{}, {b})});
              return graph.add("product", Combine{Combination::multiply}, {a, live});
            }));
  // And some that stay constant: 2 padded with 2, 2 + 3.
  after(remove_dead_channels,
        network([](GraphBuilder& graph, int a, int) { return graph.add("pad", Pad{{1, 1, 1, 1}, 2}, {a}); }), 2);
  after(remove_dead_channels,
        network([](GraphBuilder& graph, int a, int b) { return graph.add("sum", Combine{}, {a, b}); }), 1);
}

TEST_CASE("remove_dead_channels: neighbours in an LRN stay though nobody reads them") {
  GraphBuilder graph;
  const int y = graph.convolution(conv("a", 1, 3), {graph.input({1, 4, 4})});
  ConvLayer last = conv("b", 3, 1);
  last.weights[1] = 0;
  unchanged(remove_dead_channels, graph.finish({graph.convolution(last, {graph.add("lrn", Lrn{3, 1, 1, 1}, {y})})}));
}

TEST_CASE("remove_dead_channels: one channel of every tensor stays") {
  GraphBuilder graph;
  int y = graph.convolution(conv("a", 1, 3, {.bias = {1, 2, 3}}, {0, 1, 2}), {graph.input({1, 4, 4})});
  const Network result = after(remove_dead_channels, graph.finish({graph.convolution(conv("b", 3, 2), {y})}), 5);
  CHECK(result.layers[0].shape.out_channels == 1);
  CHECK(result.layers[1].shape.in_channels == 1);
  CHECK(result.layers[1].bias == std::vector<float>{0.5F + 2 * 0.75F + 3 * 1, 0.75F + 2 * 1 + 3 * 1.25F});
}

TEST_CASE("dead channels: a filter without a nonzero, whose residual is added last") {
  GraphBuilder graph;
  const int x = graph.input({2, 4, 4});
  const int constant = graph.convolution(conv("constant", 2, 2, {.bias = {3, -5}}, {0, 1}), {x});
  ConvLayer layer = conv("c", 2, 2, {.bias = {-1, 2}, .activation = Activation::relu}, {0});
  layer.shape.epilogue.residual = layer.shape.epilogue.residual_last = true;
  const int y = graph.convolution(layer, {x, constant});
  const Network network = graph.finish({graph.convolution(conv("end", 2, 3), {y})});
  const Rewritten result = remove_dead_channels(network);  // 3 of the channel, not 0 or 2
  CHECK(result.changes > 0);
  check_same(network, result.network);
}
