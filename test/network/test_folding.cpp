// Operators that do nothing, padding, affines: what is dropped or folded, and what must stay.
#include "test/network/pass_checks.h"

using namespace burin;
using namespace burin_test;

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
  x = graph.add("view", ChannelView{0, 2}, {x});
  x = graph.add("clip", Elementwise{ElementFunction::clip, -kInfinity, kInfinity}, {x});
  x = graph.add("relu", Elementwise{}, {x});
  const Network result = after(drop_identities, graph.finish({x}), 5);
  CHECK(kinds(result) == "elementwise");
}

TEST_CASE("drop_identities: a ReLU of what never is negative goes, of others it stays") {
  const auto network = [](const Elementwise& before) {
    GraphBuilder graph;
    const int y = graph.add("before", before, {graph.input({2, 4, 4})});
    return graph.finish({graph.add("relu", Elementwise{}, {y})});
  };
  CHECK(kinds(after(drop_identities, network({ElementFunction::sigmoid}), 1)) == "elementwise");
  unchanged(drop_identities, network({ElementFunction::tanh}));
  const Network cut = after(drop_identities, network({ElementFunction::clip, -1, 1}), 1);
  const auto& clip = std::get<Elementwise>(cut.operators.at(0).kind);
  CHECK(cut.operators.size() == 1);
  CHECK(clip == Elementwise{ElementFunction::clip, 0, 1});
  unchanged(drop_identities, network({ElementFunction::clip, -3, -1}));  // nothing lies between
}

TEST_CASE("drop_identities: a transpose that another pass brings behind its reader waits for that") {
  GraphBuilder graph;
  const int x = graph.add("there", Transpose{{1, 2, 0}}, {graph.input({3, 1, 1})});
  unchanged(drop_identities, graph.finish({graph.add("tanh", Elementwise{ElementFunction::tanh}, {x})}));
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

TEST_CASE("fold_affine: a factor goes into the product of matrices before it or behind it, other numbers do not") {
  const auto around = [](const ChannelAffine& affine, bool before) {
    GraphBuilder graph;
    const int x = graph.input({2, 3, 3}), scaled = before ? graph.add("affine", affine, {x}) : x;
    const int product = graph.add("product", MatMul{}, {scaled, x});
    return graph.finish({before ? product : graph.add("affine", affine, {product})});
  };
  for (const bool before : {false, true}) {
    const Network folded = after(fold_affine, around({{0.25F, 0.25F}, {0, 0}}, before), 1);
    CHECK(kinds(folded) == "matmul");
    CHECK(std::get<MatMul>(folded.operators[0].kind).scale == 0.25F);
    unchanged(fold_affine, around({{0.25F, 0.5F}, {0, 0}}, before));
    unchanged(fold_affine, around({{0.25F, 0.25F}, {0, 1}}, before));
  }
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
  folds(ChannelAffine{{1, 1}, {-1, 0}, Elementwise{}});
  unchanged(fold_pad, network(ChannelAffine{{1, 1}, {-1, 0}}));
  unchanged(fold_pad, network(ChannelAffine{{1, 1}, {-1, 0}, Elementwise{ElementFunction::clip, -1, 6}}));
  unchanged(fold_pad, network(Elementwise{ElementFunction::clip, -2, -1}));
  unchanged(fold_pad, network(Pad{{2, 2, 2, 2}, -0.5F}));
}

TEST_CASE("fold_pad: what is added last may be negative, and then the zeros stay before a maximum") {
  for (const bool is_positive : {false, true}) {
    GraphBuilder graph;
    int x = graph.input({2, 4, 4});
    if (is_positive) x = graph.add("relu", Elementwise{}, {x});
    ConvLayer layer = conv("c", 2, 2, {.activation = Activation::relu});
    layer.shape.epilogue.residual = layer.shape.epilogue.residual_last = true;
    const int padded = graph.add("pad", Pad{{1, 1, 1, 1}, 0}, {graph.convolution(layer, {x, x})});
    const Pool pool{.kernel_h = 3, .kernel_w = 3, .stride_h = 1, .stride_w = 1};
    CHECK(fold_pad(graph.finish({graph.add("pool", pool, {padded})})).changes == (is_positive ? 1 : 0));
  }
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

TEST_CASE("fold_affine: one with a function is the end") {
  const ChannelAffine ends{{2, 3}, {1, -1}, Elementwise{}};
  const auto network = [&](bool before, bool again) {
    GraphBuilder graph;
    int x = graph.input({2, 4, 4});
    if (before) x = graph.add("before", kAffine2, {x});
    x = graph.add("ends", ends, {x});
    if (again) x = graph.add("again", kAffine2, {x});
    if (!again) x = graph.convolution(conv("c", 2, 2), {x});
    return graph.finish({x});
  };
  unchanged(fold_affine, network(false, false));
  unchanged(fold_affine, network(false, true));
  const Network merged = after(fold_affine, network(true, false), 1);
  CHECK(kinds(merged) == "channel_affine convolution");
  CHECK(then_of(merged.operators[0].kind) != nullptr);
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
