// Pools: which become the end of a convolution, and which stay.
#include "test/network/pass_checks.h"

using namespace burin;
using namespace burin_test;

namespace {

const Pool kMax3 = {.kernel_h = 3, .kernel_w = 3, .stride_h = 2, .stride_w = 2, .pad = {1, 1, 1, 1}};

ConvLayer relu(const std::string& name, int in, int out) {
  return conv(name, in, out, {.kernel = 3, .pad = 1, .activation = Activation::relu});
}

Rewritten fuse_every_pool(Network network) { return fuse_pools(std::move(network), {}); }

std::string tensor_name(const Network& network, int tensor) {
  return network.tensors[static_cast<std::size_t>(tensor)].name;
}

}  // namespace

TEST_CASE("fuse_pools: a pool becomes the end of the convolution before it") {
  GraphBuilder graph;
  const int y = graph.convolution(relu("c", 2, 3), {graph.input({2, 8, 9})});
  const Network result = after(fuse_every_pool, graph.finish({graph.add("pool", kMax3, {y})}), 1);
  CHECK(kinds(result) == "convolution");
  CHECK(result.layers[0].shape.epilogue.pool == kMax3);
  CHECK(tensor_name(result, result.outputs[0]) == "pool_out");
  CHECK(result.tensors[static_cast<std::size_t>(result.outputs[0])].shape == std::vector<std::int64_t>{3, 4, 5});
}

TEST_CASE("fuse_pools: a mean over images, behind a residual") {
  GraphBuilder graph;
  const int x = graph.input({2, 7, 5});
  ConvLayer layer = conv("c", 2, 2, {.activation = Activation::relu, .residual = true});
  const int y = graph.convolution(std::move(layer), {x, x});
  const Network result = after(fuse_every_pool, graph.finish({graph.add("mean", GlobalAveragePool{}, {y})}), 1);
  CHECK(kinds(result) == "convolution");
  CHECK(result.layers[0].shape.epilogue.pool == Pool{.kind = PoolKind::average, .kernel_h = 7, .kernel_w = 5});
}

TEST_CASE("fuse_pools: convolutions side by side pool their own channels") {
  GraphBuilder graph;
  const int x = graph.input({2, 8, 8});
  const int a = graph.convolution(relu("a", 2, 3), {x}), b = graph.convolution(conv("b", 2, 4), {x});
  const int both = graph.add("concat", Concat{0}, {a, b});
  const int next = graph.convolution(conv("next", 7, 2), {graph.add("pool", kMax3, {both})});
  const Network result = after(fuse_every_pool, graph.finish({next}), 1);
  CHECK(kinds(result) == "convolution convolution concat convolution");
  CHECK(tensor_name(result, result.operators[0].output) == "a_out.pooled");
  CHECK(tensor_name(result, result.operators[2].output) == "pool_out");
  for (int i = 0; i < 2; ++i) CHECK(result.layers[static_cast<std::size_t>(i)].shape.epilogue.pool == kMax3);
}

TEST_CASE("fuse_pools: where the input is no convolution's alone, the pool stays") {
  const auto network = [](int variant) {
    GraphBuilder graph;
    const int x = graph.input({2, 8, 8});
    const int y = graph.convolution(relu("c", 2, 2), {x}), z = graph.convolution(relu("d", 2, 2), {x});
    std::vector<int> outputs;
    int pooled = y;
    if (variant == 0) outputs.push_back(y);
    if (variant == 1) outputs.push_back(graph.add("other", GlobalAveragePool{}, {y}));
    if (variant == 2) pooled = x;
    if (variant == 3) pooled = graph.add("lrn", Lrn{}, {y});
    if (variant == 4) pooled = graph.add("concat", Concat{0}, {y, x});
    if (variant == 5) pooled = graph.add("concat", Concat{0}, {y, y});
    if (variant == 6) pooled = graph.add("concat", Concat{1}, {y, z});
    if (variant == 7) outputs.push_back(pooled = graph.add("concat", Concat{0}, {y, z}));
    outputs.push_back(graph.add("pool", kMax3, {pooled}));
    if (variant != 6) outputs.push_back(z);
    if (variant == 0 || variant == 1) outputs.pop_back();
    return graph.finish(outputs);
  };
  // Of variants 1 and 2 the mean or the pool has no convolution of its own either.
  for (int variant = 0; variant <= 7; ++variant) {
    INFO("variant " << variant);
    unchanged(fuse_every_pool, network(variant));
  }
}

TEST_CASE("fuse_pools: a dilated pool stays, and so does one that would compute many pixels twice") {
  const auto network = [](const Pool& pool, std::int64_t extent) {
    GraphBuilder graph;
    const int y = graph.convolution(conv("c", 1, 1), {graph.input({1, extent, extent})});
    return graph.finish({graph.add("pool", pool, {y})});
  };
  unchanged(fuse_every_pool, network({.kernel_h = 2, .kernel_w = 2, .dilation_h = 2, .dilation_w = 2}, 8));
  // Tiles of 32x32 pixels of which windows share 8 rows and columns with others.
  unchanged(fuse_every_pool, network({.kernel_h = 9, .kernel_w = 9}, 64));
  unchanged(fuse_every_pool, network({.kind = PoolKind::average, .kernel_h = 33, .kernel_w = 33}, 33));  // 1089 pixels
  after(fuse_every_pool, network({.kernel_h = 9, .kernel_w = 9}, 32), 1);                                // one tile
  after(fuse_every_pool, network({.kind = PoolKind::average, .kernel_h = 32, .kernel_w = 32}, 32), 1);
}

TEST_CASE("fuse_pools: nothing goes into a convolution behind its pool") {
  GraphBuilder graph;
  const int x = graph.input({2, 8, 8});
  const int y = graph.add("pool", kMax3, {graph.convolution(conv("c", 2, 2), {x})});
  const int z = graph.add("pool2", kMax3, {y});
  Network network = after(fuse_every_pool, graph.finish({graph.add("relu", Elementwise{}, {z})}), 1);
  CHECK(kinds(network) == "convolution pool elementwise");

  GraphBuilder other;
  const int start = other.input({2, 8, 8});
  const int half = other.add("pool", kMax3, {start});
  const int pooled = other.add("pool2", kMax3, {other.convolution(conv("c", 2, 2), {start})});
  const int sum = other.add("sum", Combine{}, {other.add("bn", kAffine2, {pooled}), half});
  network = after(fuse_every_pool, other.finish({other.add("relu", Elementwise{}, {sum})}), 1);
  CHECK(kinds(after(fuse_epilogues, network, 1)) == "pool convolution channel_affine combine");
  unchanged(fold_affine, network);
}

TEST_CASE("fuse_pools: a constant channel is constant behind the pool, unless zeros around it are averaged") {
  const auto changes = [](const Pool& pool) {
    GraphBuilder graph;
    const int x = graph.input({2, 8, 8});
    ConvLayer layer = conv("c", 2, 2, {.bias = {1, 2}}, {1});  // channel 1 is 2
    const int y = graph.add("pool", pool, {graph.convolution(std::move(layer), {x})});
    const Network network = fuse_every_pool(graph.finish({graph.convolution(conv("next", 2, 2), {y})})).network;
    const Rewritten result = remove_dead_channels(network);
    check_same(network, result.network);
    return result.changes;
  };
  CHECK(changes(kMax3) > 0);
  Pool average = kMax3;
  average.kind = PoolKind::average;
  CHECK(changes(average) > 0);
  average.count_padding = true;
  CHECK(changes(average) == 0);
}
