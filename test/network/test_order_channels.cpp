// Channel shuffles that become another order of weights, and those that stay.
#include "test/network/pass_checks.h"

using namespace burin;
using namespace burin_test;

namespace {

int shuffle(GraphBuilder& graph, const std::string& name, int x, int groups = 2) {
  const std::vector<std::int64_t> shape = graph.network.tensors[static_cast<std::size_t>(x)].shape;
  x = graph.add(name + ".apart", Reshape{{groups, shape[0] / groups, shape[1], shape[2]}}, {x});
  x = graph.add(name + ".turned", Transpose{{1, 0, 2, 3}}, {x});
  return graph.add(name, Reshape{shape}, {x});
}

// Different filters, so that no two channels are the same.
int layer(GraphBuilder& graph, const std::string& name, int x, int out, const ConvOptions& options = {}) {
  const auto in = static_cast<int>(graph.network.tensors[static_cast<std::size_t>(x)].shape[0]);
  ConvLayer made = conv(name, in, out, options);
  for (std::size_t i = 0; i < made.weights.size(); ++i) made.weights[i] = static_cast<float>(i * i % 17) / 8 - 1;
  return graph.convolution(std::move(made), {x});
}

// A ShuffleNet's unit of 2 x `channels` channels: one half goes through a convolution.
int unit(GraphBuilder& graph, const std::string& name, int x, int channels) {
  const int kept = graph.add(name + ".kept", ChannelView{0, channels}, {x});
  const int half = graph.add(name + ".half", ChannelView{channels, channels}, {x});
  const int made = layer(graph, name + ".conv", half, channels, {.bias = std::vector<float>(channels, 0.5F)});
  return shuffle(graph, name + ".out", graph.add(name + ".join", Concat{}, {kept, made}));
}

}  // namespace

TEST_CASE("order_channels: a shuffle in front of layers becomes the order of their weights") {
  GraphBuilder graph;
  const int x = shuffle(graph, "shuffled", graph.input({6, 3, 4}), 3);
  const int dense = layer(graph, "dense", x, 4, {.kernel = 3, .pad = 1});
  const int depthwise = layer(graph, "depthwise", x, 6, {.groups = 6, .bias = {1, 2, 3, 4, 5, 6}});
  const int affine = graph.add("affine", ChannelAffine{{1, 2, 3, 4, 5, 6}, {6, 5, 4, 3, 2, 1}}, {depthwise});
  const int relu = graph.add("relu", Elementwise{}, {affine});
  const int mean = graph.add("mean", GlobalAveragePool{}, {relu});
  const int flat = graph.add("flat", Reshape{{6}}, {mean});
  Linear linear{6, 2, {1, 2, 3, 4, 5, 6, 6, 4, 2, 0, -2, -4}, {}};
  const Network network = graph.finish({dense, graph.add("linear", linear, {flat})});
  CHECK(kinds(after(order_channels, network, 1)) ==
        "convolution convolution channel_affine elementwise global_average_pool reshape linear");
}

TEST_CASE("order_channels: units that share out what they shuffle copy once each") {
  GraphBuilder graph;
  const int input = graph.input({3, 3, 4});
  int x = graph.add("join", Concat{}, {layer(graph, "a", input, 8), layer(graph, "b", input, 8)});
  x = unit(graph, "unit2", unit(graph, "unit1", shuffle(graph, "first", x), 8), 8);
  const Network network = graph.finish({layer(graph, "last", x, 5)});
  const Network ordered = after(order_channels, network, 3);
  CHECK(kinds(ordered) ==
        "convolution convolution concat reshape pick reshape channel_view convolution concat reshape pick reshape "
        "channel_view convolution concat convolution");
  check_same(network, simplify(network));
}

TEST_CASE("order_channels: channels that no convolution in one group reads stay in their order") {
  const auto stays = [](const auto& read) {
    GraphBuilder graph;
    const int x = layer(graph, "made", graph.input({3, 3, 4}), 8);
    const int y = read(graph, shuffle(graph, "shuffled", x));
    unchanged(order_channels, graph.finish({y}));
  };
  stays([](GraphBuilder&, int x) { return x; });  // an output of the network
  stays([](GraphBuilder& graph, int x) { return layer(graph, "grouped", x, 8, {.groups = 2}); });
  stays([](GraphBuilder& graph, int x) { return graph.add("sum", Combine{}, {x, x}); });
  stays([](GraphBuilder& graph, int x) { return graph.add("softmax", Softmax{}, {x}); });
  stays([](GraphBuilder& graph, int x) { return layer(graph, "half", graph.add("view", ChannelView{4, 4}, {x}), 2); });
  stays([](GraphBuilder& graph, int x) {
    return layer(graph, "reader", graph.add("flat", Reshape{{96, 1, 1}}, {x}), 2);
  });
}

TEST_CASE("order_channels: what cannot be put in another order keeps its shuffle") {
  const auto stays = [](const auto& make) {
    GraphBuilder graph;
    const int input = graph.input({4, 3, 4});
    const int x = graph.add("join", Concat{}, {make(graph, input), make(graph, input)});
    const int y = shuffle(graph, "shuffled", x);
    const int kept = graph.add("kept", ChannelView{0, 4}, {y});
    const int half = layer(graph, "conv", graph.add("half", ChannelView{4, 4}, {y}), 2);
    unchanged(order_channels, graph.finish({kept, half}));
  };
  int count = 0;
  const auto name = [&] { return "made" + std::to_string(count++); };
  stays([&](GraphBuilder& graph, int x) { return layer(graph, name(), x, 4, {.groups = 2}); });
  stays([&](GraphBuilder& graph, int x) {
    ConvLayer made = conv(name(), 4, 4, {.residual = true});
    return graph.convolution(std::move(made), {x, x});
  });
  stays([](GraphBuilder&, int x) { return x; });
}
