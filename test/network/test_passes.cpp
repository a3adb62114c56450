// Each pass on graphs made for it: what it does, and what it must leave alone.
#include "compiler/network/passes.h"

#include <catch2/catch.hpp>
#include <limits>

#include "compiler/network/simplify.h"
#include "test/ir/small_network.h"
#include "test/network/same_outputs.h"

using namespace burin;
using burin_test::check_same;
using burin_test::GraphBuilder;

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct ConvOptions {
  int kernel = 1;
  int pad = 0;
  int groups = 1;
  std::vector<float> bias = {};
  Activation activation = Activation::none;
  bool residual = false;
};

// Weights 0.5, 0.75, 1, ...; zero for the filters named in `empty`.
ConvLayer conv(const std::string& name, int in, int out, const ConvOptions& options = {}, std::vector<int> empty = {}) {
  ConvLayer layer;
  layer.name = name;
  ConvShape& shape = layer.shape;
  shape.in_channels = in;
  shape.out_channels = out;
  shape.groups = options.groups;
  shape.kernel_h = shape.kernel_w = options.kernel;
  shape.pad = {options.pad, options.pad, options.pad, options.pad};
  shape.epilogue = {!options.bias.empty(), options.residual, options.activation, 0.01F};
  layer.bias = options.bias;
  for (int k = 0; k < out; ++k) {
    const bool is_empty = std::find(empty.begin(), empty.end(), k) != empty.end();
    for (int i = 0; i < in / options.groups * options.kernel * options.kernel; ++i) {
      layer.weights.push_back(is_empty ? 0.0F : 0.5F + 0.25F * static_cast<float>(k + i));
    }
  }
  return layer;
}

// Kinds of the operators in their order, "convolution elementwise".
std::string kinds(const Network& network) {
  std::string text;
  for (const Operator& op : network.operators) {
    if (!text.empty()) text += ' ';
    text += kind_name(op.kind);
  }
  return text;
}

// Runs the pass and checks that outputs stay as they were.
Network after(Rewritten (*pass)(Network), const Network& network, int changes) {
  REQUIRE(verify(network).empty());
  const Rewritten result = pass(network);
  INFO(print(network));
  CHECK(result.changes == changes);
  check_same(network, result.network);
  if (changes == 0) CHECK(print(result.network) == print(network));
  return result.network;
}

void unchanged(Rewritten (*pass)(Network), const Network& network) { after(pass, network, 0); }

const ChannelAffine kAffine2 = {{2, -3}, {0.5F, 1}};

}  // namespace

TEST_CASE("drop_unread: operators in a row, and their layers") {
  GraphBuilder graph;
  const int x = graph.input({2, 3, 3});
  const int y = graph.add("relu", Elementwise{}, {x});
  graph.add("pool", GlobalAveragePool{}, {graph.convolution(conv("unread", 2, 3), {y})});
  const Network result = after(drop_unread, graph.finish({y}), 2);
  CHECK(kinds(result) == "elementwise");
  CHECK(result.layers.empty());
  CHECK(result.tensors.size() == 2);
}

TEST_CASE("drop_identities: in the middle, at the end, many readers") {
  GraphBuilder graph;
  const int x = graph.input({2, 3, 3});
  const int same = graph.add("same", Identity{}, {graph.add("dropout", Identity{}, {x})});
  const int a = graph.add("a", Elementwise{}, {same}), b = graph.add("b", Combine{}, {same, same});
  const int out = graph.add("out", Identity{}, {graph.add("sum", Combine{}, {a, b})});
  const Network result = after(drop_identities, graph.finish({out}), 3);
  CHECK(kinds(result) == "elementwise combine combine");
  CHECK(result.operators.back().name == "sum");
  CHECK(result.tensors[static_cast<std::size_t>(result.outputs[0])].name == "out_out");
}

TEST_CASE("drop_identities: copies of inputs and of outputs stay") {
  GraphBuilder graph;
  const int x = graph.input({2});
  const int y = graph.add("relu", Elementwise{}, {x});
  unchanged(drop_identities,
            graph.finish({graph.add("copy", Identity{}, {x}), y, graph.add("again", Identity{}, {y})}));
}

TEST_CASE("drop_identities: operators that do nothing here") {
  GraphBuilder graph;
  int x = graph.input({2, 1, 3});
  x = graph.add("reshape", Reshape{{2, 1, 3}}, {x});
  x = graph.add("pad", Pad{}, {x});
  x = graph.add("concat", Concat{1}, {x});
  x = graph.add("clip", Elementwise{ElementFunction::clip, -kInfinity, kInfinity}, {x});
  x = graph.add("relu", Elementwise{}, {x});
  const Network result = after(drop_identities, graph.finish({x}), 4);
  CHECK(kinds(result) == "elementwise");
}

TEST_CASE("drop_identities: transposes of extents of 1 are reshapes, reshapes of reshapes are one") {
  GraphBuilder graph;
  int x = graph.input({2, 1, 3});
  x = graph.add("relu", Elementwise{}, {x});
  x = graph.add("transpose", Transpose{{1, 0, 2}}, {x});
  x = graph.add("flatten", Reshape{{6}}, {x});
  const Network result = after(drop_identities, graph.finish({graph.add("out", Softmax{}, {x})}), 3);
  CHECK(kinds(result) == "elementwise reshape softmax");
}

TEST_CASE("drop_identities: a transpose that moves elements stays") {
  GraphBuilder graph;
  unchanged(drop_identities, graph.finish({graph.add("turn", Transpose{{2, 1, 0}}, {graph.input({2, 1, 3})})}));
}

TEST_CASE("fold_pad: into a convolution") {
  GraphBuilder graph;
  const int x = graph.input({2, 4, 4});
  const int padded = graph.add("pad", Pad{{1, 0, 2, 1}, 0}, {x});
  const Network result =
      after(fold_pad, graph.finish({graph.convolution(conv("c", 2, 2, {.kernel = 3, .pad = 1}), {padded})}), 1);
  CHECK(kinds(result) == "convolution");
  CHECK(result.layers[0].shape.pad == Padding{2, 1, 3, 2});
  CHECK(result.layers[0].shape.in_h == 4);
}

TEST_CASE("fold_pad: not with another value, another reader or as an output") {
  for (int variant = 0; variant < 4; ++variant) {
    INFO("variant " << variant);
    GraphBuilder graph;
    const int x = graph.input({2, 4, 4});
    const int padded = graph.add("pad", Pad{{1, 1, 1, 1}, variant == 0 ? 1.0F : 0.0F}, {x});
    std::vector<int> outputs;
    if (variant == 1) outputs.push_back(graph.add("relu", Elementwise{}, {padded}));
    if (variant == 2) outputs.push_back(padded);
    if (variant == 3) {
      const int wide = graph.add("wide", Pad{{1, 1, 1, 1}, 1}, {x});
      outputs.push_back(graph.convolution(conv("c", 2, 2, {.residual = true}), {wide, padded}));
    } else {
      outputs.push_back(graph.convolution(conv("c", 2, 2, {.kernel = 3}), {padded}));
    }
    unchanged(fold_pad, graph.finish(outputs));
  }
}

TEST_CASE("fold_pad: into pools") {
  const auto network = [](Pool pool, bool relu) {
    GraphBuilder graph;
    int x = graph.input({2, 5, 5});
    if (relu) x = graph.add("relu", Elementwise{}, {x});
    pool.kernel_h = pool.kernel_w = 3;
    pool.stride_h = pool.stride_w = 2;
    return graph.finish({graph.add("pool", pool, {graph.add("pad", Pad{{1, 1, 1, 1}, 0}, {x})})});
  };
  const Pool max, average{.kind = PoolKind::average}, counting{.kind = PoolKind::average, .count_padding = true};
  CHECK(kinds(after(fold_pad, network(max, true), 1)) == "elementwise pool");
  unchanged(fold_pad, network(max, false));
  CHECK(kinds(after(fold_pad, network(counting, false), 1)) == "pool");
  const Network folded = after(fold_pad, network(average, false), 1);
  CHECK(std::get<Pool>(folded.operators[0].kind).count_padding);
  // Its own padding does not count, the zeros would.
  Pool padded = average;
  padded.pad = {1, 1, 1, 1};
  unchanged(fold_pad, network(padded, false));
}

TEST_CASE("fold_pad: into a maximum only of what is never negative") {
  const Pad zeros{{1, 1, 1, 1}, 0};
  const Pool pool{.kernel_h = 3, .kernel_w = 3, .stride_h = 2, .stride_w = 2};
  const auto network = [&](const OperatorKind& last) {
    GraphBuilder graph;
    const int x = graph.add("last", last, {graph.add("relu", Elementwise{}, {graph.input({2, 5, 5})})});
    return graph.finish({graph.add("pool", pool, {graph.add("pad", zeros, {x})})});
  };
  const auto folds = [&](const OperatorKind& last) {
    CHECK(kinds(after(fold_pad, network(last), 1)).ends_with("pool"));
  };
  folds(GlobalAveragePool{});
  folds(Lrn{});
  folds(Elementwise{ElementFunction::silu});
  folds(Elementwise{ElementFunction::clip, -1, 6});
  folds(Pad{{0, 1, 0, 1}, 0.5F});
  unchanged(fold_pad, network(ChannelAffine{{1, 1}, {-1, 0}}));
  unchanged(fold_pad, network(Elementwise{ElementFunction::clip, -2, -1}));
  unchanged(fold_pad, network(Pad{{2, 2, 2, 2}, -0.5F}));
}

TEST_CASE("fold_pad: windows that begin in the zeros stay") {
  GraphBuilder graph;
  const int x = graph.add("pad", Pad{{0, 2, 0, 2}, 0}, {graph.input({1, 4, 4})});
  const Pool pool{.kind = PoolKind::average,
                  .kernel_h = 3,
                  .kernel_w = 3,
                  .stride_h = 4,
                  .stride_w = 4,
                  .round_up = true,
                  .count_padding = true};
  unchanged(fold_pad, graph.finish({graph.add("pool", pool, {x})}));
}

TEST_CASE("fold_affine: into the convolution before it") {
  GraphBuilder graph;
  const int x = graph.input({2, 4, 4});
  const int y = graph.convolution(conv("c", 2, 2, {.kernel = 3, .pad = 1, .bias = {1, 2}}), {x});
  const Network result = after(fold_affine, graph.finish({graph.add("bn", kAffine2, {y})}), 1);
  CHECK(kinds(result) == "convolution");
  CHECK(result.layers[0].weights[0] == 0.5F * 2);
  CHECK(result.layers[0].weights[18] == 0.75F * -3);
  CHECK(result.layers[0].bias == std::vector<float>{2.5F, -5});
}

TEST_CASE("fold_affine: into a linear layer, before and behind") {
  Linear linear{.in_features = 2, .out_features = 2, .weights = {1, 2, 3, 4}, .bias = {}};
  GraphBuilder before;
  const int y = before.add("fc", linear, {before.input({2})});
  const Network scaled = after(fold_affine, before.finish({before.add("bn", kAffine2, {y})}), 1);
  CHECK(std::get<Linear>(scaled.operators[0].kind).weights == std::vector<float>{2, 4, -9, -12});
  CHECK(std::get<Linear>(scaled.operators[0].kind).bias == std::vector<float>{0.5F, 1});
  GraphBuilder behind;
  const int x = behind.add("bn", kAffine2, {behind.input({2})});
  const Network shifted = after(fold_affine, behind.finish({behind.add("fc", linear, {x})}), 1);
  CHECK(std::get<Linear>(shifted.operators[0].kind).weights == std::vector<float>{2, -6, 6, -12});
  CHECK(std::get<Linear>(shifted.operators[0].kind).bias == std::vector<float>{2.5F, 5.5F});
}

TEST_CASE("fold_affine: behind it, padding permits a scale but no shift") {
  const auto network = [](const ChannelAffine& affine, int pad) {
    GraphBuilder graph;
    const int x = graph.add("bn", affine, {graph.input({2, 4, 4})});
    return graph.finish({graph.convolution(conv("c", 2, 2, {.kernel = 3, .pad = pad}), {x})});
  };
  const ChannelAffine scale = {{2, -3}, {0, 0}};
  CHECK_FALSE(after(fold_affine, network(scale, 1), 1).layers[0].shape.epilogue.bias);
  CHECK(after(fold_affine, network(kAffine2, 0), 1).layers[0].shape.epilogue.bias);
  unchanged(fold_affine, network(kAffine2, 1));
}

TEST_CASE("fold_affine: several in a row") {
  GraphBuilder graph;
  int x = graph.add("relu", Elementwise{}, {graph.input({2, 4, 4})});
  for (const char* name : {"a", "b", "c"}) x = graph.add(name, kAffine2, {x});
  const Network result = after(fold_affine, graph.finish({graph.add("end", Elementwise{}, {x})}), 2);
  CHECK(kinds(result) == "elementwise channel_affine elementwise");
}

TEST_CASE("fold_affine: not over an activation, a residual, or what others read") {
  const auto network = [](const ConvOptions& options, bool second_reader) {
    GraphBuilder graph;
    const int x = graph.input({2, 4, 4});
    std::vector<int> inputs = {x};
    if (options.residual) inputs.push_back(x);
    const int y = graph.convolution(conv("c", 2, 2, options), inputs);
    std::vector<int> outputs = {graph.add("bn", kAffine2, {y})};
    if (second_reader) outputs.push_back(graph.add("relu", Elementwise{}, {y}));
    return graph.finish(outputs);
  };
  unchanged(fold_affine, network({.activation = Activation::relu}, false));
  unchanged(fold_affine, network({.residual = true}, false));
  unchanged(fold_affine, network({}, true));
}

TEST_CASE("fold_affine: a residual is not multiplied by weights") {
  GraphBuilder graph;
  const int x = graph.input({2, 4, 4});
  const int affine = graph.add("bn", kAffine2, {x});
  unchanged(fold_affine, graph.finish({graph.convolution(conv("c", 2, 2, {.residual = true}), {x, affine})}));
}

TEST_CASE("fold_affine: weights stay finite") {
  GraphBuilder graph;
  ConvLayer layer = conv("c", 1, 1);
  layer.weights = {3e38F};
  const int y = graph.convolution(layer, {graph.input({1, 1, 1})});
  const Rewritten result = fold_affine(graph.finish({graph.add("bn", ChannelAffine{{2}, {0}}, {y})}));
  CHECK(result.changes == 0);
  CHECK(result.network.layers[0].weights == std::vector<float>{3e38F});
  CHECK(verify(result.network).empty());
}

TEST_CASE("fuse_epilogues: activations") {
  const auto fused = [](const Elementwise& function) {
    GraphBuilder graph;
    const int y = graph.convolution(conv("c", 2, 2, {.bias = {-9, 1}}), {graph.input({2, 4, 4})});
    const Network result = after(fuse_epilogues, graph.finish({graph.add("f", function, {y})}), 1);
    CHECK(kinds(result) == "convolution");
    CHECK(result.tensors[static_cast<std::size_t>(result.outputs[0])].name == "f_out");
    return result.layers[0].shape.epilogue;
  };
  CHECK(fused({ElementFunction::relu}).activation == Activation::relu);
  CHECK(fused({ElementFunction::clip, 0, 6}).activation == Activation::relu6);
  CHECK(fused({ElementFunction::clip, 0, kInfinity}).activation == Activation::relu);
  CHECK(fused({ElementFunction::sigmoid}).activation == Activation::sigmoid);
  CHECK(fused({ElementFunction::silu}).activation == Activation::silu);
  CHECK(fused({ElementFunction::leaky_relu, 0.25F, 0}).leaky_slope == 0.25F);
}

TEST_CASE("fuse_epilogues: what no epilogue can do, or others read, stays") {
  const auto network = [](const Elementwise& function, const ConvOptions& options, int variant) {
    GraphBuilder graph;
    const int y = graph.convolution(conv("c", 2, 2, options), {graph.input({2, 4, 4})});
    std::vector<int> outputs = {graph.add("f", function, {y})};
    if (variant == 1) outputs.push_back(y);
    if (variant == 2) outputs.push_back(graph.add("pool", GlobalAveragePool{}, {y}));
    return graph.finish(outputs);
  };
  unchanged(fuse_epilogues, network({ElementFunction::hard_swish}, {}, 0));
  unchanged(fuse_epilogues, network({ElementFunction::hard_sigmoid, 0.2F, 0.5F}, {}, 0));
  unchanged(fuse_epilogues, network({ElementFunction::clip, -1, 1}, {}, 0));
  unchanged(fuse_epilogues, network({ElementFunction::relu}, {.activation = Activation::silu}, 0));
  unchanged(fuse_epilogues, network({ElementFunction::relu}, {}, 1));
  unchanged(fuse_epilogues, network({ElementFunction::relu}, {}, 2));
}

TEST_CASE("fuse_epilogues: a linear layer") {
  GraphBuilder graph;
  const Linear linear{.in_features = 2, .out_features = 2, .weights = {1, -2, 3, -4}, .bias = {}};
  const int y = graph.add("fc", linear, {graph.input({2})});
  const Network result = after(fuse_epilogues, graph.finish({graph.add("relu", Elementwise{}, {y})}), 1);
  CHECK(std::get<Linear>(result.operators[0].kind).activation == Activation::relu);
}

TEST_CASE("fuse_epilogues: products with a gate") {
  for (const bool gate_first : {false, true}) {
    GraphBuilder graph;
    const int y = graph.convolution(conv("c", 2, 2), {graph.input({2, 4, 4})});
    const int gate = graph.add("gate", Elementwise{ElementFunction::sigmoid}, {y});
    const std::vector<int> factors = gate_first ? std::vector{gate, y} : std::vector{y, gate};
    const int out = graph.add("mul", Combine{Combination::multiply}, factors);
    const Network result = after(fuse_epilogues, graph.finish({out}), 2);
    CHECK(kinds(result) == "convolution");
    CHECK(result.layers[0].shape.epilogue.activation == Activation::silu);
  }
  GraphBuilder graph;
  const int x = graph.input({2, 4, 4});
  const int gate = graph.add("gate", Elementwise{ElementFunction::hard_sigmoid, 1 / 6.0F, 0.5F}, {x});
  const int out = graph.add("mul", Combine{Combination::multiply}, {x, gate});
  const Network result = after(fuse_epilogues, graph.finish({out}), 1);
  CHECK(std::get<Elementwise>(result.operators.at(0).kind).function == ElementFunction::hard_swish);
}

TEST_CASE("fuse_epilogues: a gate of something else stays") {
  GraphBuilder graph;
  const int x = graph.input({2, 4, 4}), y = graph.input({2, 4, 4});
  const int gate = graph.add("gate", Elementwise{ElementFunction::sigmoid}, {y});
  unchanged(fuse_epilogues, graph.finish({graph.add("mul", Combine{Combination::multiply}, {x, gate})}));
}

TEST_CASE("fuse_epilogues: a sum and what follows it") {
  GraphBuilder graph;
  const int x = graph.input({2, 4, 4});
  const int y = graph.convolution(conv("c", 2, 2, {.kernel = 3, .pad = 1, .bias = {-9, 9}}), {x});
  const int sum = graph.add("sum", Combine{}, {x, y});
  const Network result = after(fuse_epilogues, graph.finish({graph.add("relu", Elementwise{}, {sum})}), 2);
  CHECK(kinds(result) == "convolution");
  CHECK(result.layers[0].shape.epilogue == Epilogue{true, true, Activation::relu, 0.01F});
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
  unchanged(fuse_epilogues, network({.activation = Activation::relu}, 0));
  unchanged(fuse_epilogues, network({.residual = true}, 0));
  for (int variant = 1; variant <= 4; ++variant) unchanged(fuse_epilogues, network({}, variant));
}

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

TEST_CASE("simplify: a residual block with batch normalization is three convolutions") {
  GraphBuilder graph;
  const int x = graph.input({2, 6, 6});
  int y =
      graph.add("relu1", Elementwise{}, {graph.add("bn1", kAffine2, {graph.convolution(conv("conv1", 2, 2), {x})})});
  y = graph.add("bn2", kAffine2, {graph.convolution(conv("conv2", 2, 2, {.kernel = 3, .pad = 1}), {y})});
  const int down = graph.add("bn3", kAffine2, {graph.convolution(conv("down", 2, 2), {x})});
  y = graph.add("relu2", Elementwise{}, {graph.add("sum", Combine{}, {y, down})});
  const Network network = graph.finish({graph.add("dropout", Identity{}, {y})});
  std::vector<std::string> log;
  const Network result = simplify(network, [&](const std::string& pass, const Network&, int changes) {
    log.push_back(pass + " " + std::to_string(changes));
  });
  check_same(network, result);
  CHECK(kinds(result) == "convolution convolution convolution");
  CHECK(result.operators[2].name == "down");
  CHECK(result.operators[2].inputs.size() == 2);
  CHECK(log == std::vector<std::string>{"drop_unread 0", "drop_identities 1", "fold_pad 0", "fold_affine 3",
                                        "fuse_epilogues 3", "remove_dead_channels 0"});
}
