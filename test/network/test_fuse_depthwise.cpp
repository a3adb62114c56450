// Depthwise convolutions: which become the end of the convolution before them, and which stay.
#include "test/network/pass_checks.h"

using namespace burin;
using namespace burin_test;

namespace {

Rewritten fuse_each_depthwise(Network network) {
  return fuse_depthwise(std::move(network), [](const ConvLayer&, const ConvLayer&, const ConvLayer&) { return true; });
}

ConvLayer pointwise(int in, int out, bool residual = false) {
  return conv("expand", in, out, {.bias = {0.5F, -1, 2}, .activation = Activation::relu, .residual = residual});
}
ConvLayer depthwise(int channels, std::vector<float> bias = {}) {
  ConvLayer layer =
      conv("depthwise", channels, channels,
           {.kernel = 3, .pad = 1, .groups = channels, .bias = std::move(bias), .activation = Activation::relu});
  for (std::size_t i = 0; i < layer.weights.size(); ++i) {
    if (i % 2 == 0) layer.weights[i] = -layer.weights[i];
  }
  return layer;
}

}  // namespace

TEST_CASE("fuse_depthwise: a depthwise convolution becomes the end of the convolution before it") {
  for (const bool residual : {false, true}) {
    for (const bool bias : {false, true}) {
      GraphBuilder graph;
      const int x = graph.input({3, 5, 6});
      const int y =
          graph.convolution(pointwise(3, 3, residual), residual ? std::vector<int>{x, x} : std::vector<int>{x});
      ConvLayer window = depthwise(3, bias ? std::vector<float>{1, -2, 0.25F} : std::vector<float>());
      window.shape.stride_h = 2;
      window.shape.pad = {0, 1, 2, 1};
      window.shape.epilogue.function = Elementwise{ElementFunction::hard_swish};
      const Network result = after(fuse_each_depthwise, graph.finish({graph.convolution(window, {y})}), 1);
      CHECK(kinds(result) == "convolution");
      CHECK(result.operators[0].name == "expand+depthwise");
      const ConvLayer& layer = result.layers.at(0);
      CHECK(layer.name == "expand+depthwise");
      CHECK(layer.shape.epilogue.pool == Pool{.kind = PoolKind::filter,
                                              .kernel_h = 3,
                                              .kernel_w = 3,
                                              .stride_h = 2,
                                              .stride_w = 1,
                                              .pad = {0, 1, 2, 1}});
      CHECK(layer.shape.epilogue.then == window.shape.epilogue.function);
      CHECK(layer.filters == window.weights);
    }
  }
}

TEST_CASE("fuse_depthwise: of depthwise convolutions one behind the other, every second one") {
  GraphBuilder graph;
  int x = graph.convolution(pointwise(3, 3), {graph.input({3, 5, 6})});
  for (int i = 0; i < 3; ++i) {
    ConvLayer layer = depthwise(3);
    layer.name += std::to_string(i);
    x = graph.convolution(layer, {x});
  }
  CHECK(kinds(after(fuse_each_depthwise, graph.finish({x}), 2)) == "convolution convolution");
}

TEST_CASE("fuse_depthwise: what others read, and what is no window of a channel by itself, stays") {
  const auto network = [](int variant) {
    GraphBuilder graph;
    const int x = graph.input({3, 8, 8});
    ConvLayer before = pointwise(3, 3, variant == 2);
    if (variant == 1) before.shape.epilogue.pool = Pool{.kernel_h = 2, .kernel_w = 2};
    if (variant == 2) before.shape.epilogue.residual_last = true;
    const int y = graph.convolution(before, variant == 2 ? std::vector<int>{x, x} : std::vector<int>{x});
    std::vector<int> outputs;
    if (variant == 3) outputs.push_back(y);
    if (variant == 4) outputs.push_back(graph.add("other", GlobalAveragePool{}, {y}));
    ConvLayer window = depthwise(3);
    if (variant == 5) {
      window.shape.out_channels = 6;
      window.weights.insert(window.weights.end(), window.weights.begin(), window.weights.end());
    }
    if (variant == 6) {
      window.shape.groups = 1;
      window.weights.resize(81, 0.5F);
    }
    if (variant == 7) window.shape.dilation_h = 2;
    if (variant == 8) window.shape.epilogue.residual = true;
    if (variant == 9) window.shape.epilogue.pool = Pool{.kernel_h = 2, .kernel_w = 2};
    if (variant == 10) window.shape.pad = {4, 1, 1, 1};  // windows of padding alone
    const int read = variant == 11 ? graph.add("lrn", Lrn{}, {y}) : y;
    outputs.push_back(graph.convolution(window, variant == 8 ? std::vector<int>{read, x} : std::vector<int>{read}));
    return graph.finish(outputs);
  };
  after(fuse_each_depthwise, network(0), 1);
  for (int variant = 1; variant <= 11; ++variant) {
    INFO("variant " << variant);
    unchanged(fuse_each_depthwise, network(variant));
  }
}

TEST_CASE("fuse_depthwise: where it is not wanted, and without anyone who wants it, all stays") {
  GraphBuilder graph;
  const int y = graph.convolution(pointwise(3, 3), {graph.input({3, 5, 6})});
  const Network network = graph.finish({graph.convolution(depthwise(3), {y})});
  int asked = 0;
  const Windowed never = [&](const ConvLayer& made, const ConvLayer& convolution, const ConvLayer& window) {
    CHECK(made.name == "expand+depthwise");
    CHECK(convolution.name == "expand");
    CHECK(window.name == "depthwise");
    ++asked;
    return false;
  };
  CHECK(fuse_depthwise(network, never).changes == 0);
  CHECK(asked == 1);
  CHECK(fuse_depthwise(network, {}).changes == 0);
  CHECK(kinds(simplify(network)) == "convolution convolution");
}
