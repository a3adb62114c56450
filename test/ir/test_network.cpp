#include "ir/network.h"

#include <limits>

#include "ir/limits.h"
#include "test/catch.h"
#include "test/ir/random_layers.h"
#include "test/ir/small_network.h"

using namespace burin;
using burin_test::any_contains;
using burin_test::GraphBuilder;

namespace {

constexpr float kFloatInfinity = std::numeric_limits<float>::infinity();

// data 3x8x8 -> conv -> relu -> pool -> flatten -> fc -> prob
Network small_network() {
  GraphBuilder graph;
  const int data = graph.input({3, 8, 8}, "data");
  ConvShape shape;
  shape.in_channels = 3;
  shape.out_channels = 4;
  shape.kernel_h = shape.kernel_w = 3;
  shape.in_h = shape.in_w = 8;
  shape.pad = {1, 1, 1, 1};
  shape.epilogue.bias = true;
  const int conv = graph.convolution(burin_test::make_layer("conv", shape, 1), {data});
  const int relu = graph.add("relu", Elementwise{}, {conv});
  Pool pool;
  pool.kernel_h = pool.kernel_w = pool.stride_h = pool.stride_w = 2;
  const int pooled = graph.add("pool", pool, {relu});
  const int flat = graph.add("flatten", Reshape{{64}}, {pooled});
  Linear linear;
  linear.in_features = 64;
  linear.out_features = 2;
  linear.weights.assign(128, 0.5F);
  const int fc = graph.add("fc", linear, {flat});
  return graph.finish({graph.add("prob", Softmax{}, {fc})});
}

template <typename Change>
std::vector<std::string> network_faults_after(Change change) {
  Network network = small_network();
  change(network);
  return verify(network);
}

// Faults of one operator for inputs of these shapes.
std::vector<std::string> faults_of(OperatorKind kind, const std::vector<std::vector<std::int64_t>>& inputs) {
  std::vector<std::string> faults;
  const auto shape = output_shape({}, {"op", std::move(kind), {}, 0}, inputs, faults);
  CHECK(shape.empty() == !faults.empty());
  return faults;
}

std::vector<std::int64_t> shape_of(OperatorKind kind, const std::vector<std::vector<std::int64_t>>& inputs) {
  std::vector<std::string> faults;
  const auto shape = output_shape({}, {"op", std::move(kind), {}, 0}, inputs, faults);
  INFO((faults.empty() ? std::string() : faults.front()));
  CHECK(faults.empty());
  return shape;
}

void expect(const std::vector<std::string>& faults, const std::string& part) {
  INFO(part << " in " << (faults.empty() ? "nothing" : faults.front()));
  CHECK(any_contains(faults, part));
}

using Shapes = std::vector<std::vector<std::int64_t>>;

Pool pool_of(int kernel, int stride, int pad) {
  Pool pool;
  pool.kernel_h = pool.kernel_w = kernel;
  pool.stride_h = pool.stride_w = stride;
  pool.pad = {pad, pad, pad, pad};
  return pool;
}

}  // namespace

TEST_CASE("network: a legal graph has no faults") { CHECK(verify(small_network()).empty()); }

TEST_CASE("network: layers alone are no network") {
  Network network;
  network.layers.push_back(small_network().layers[0]);
  const std::vector<std::string> faults = verify(network);
  REQUIRE(faults.size() == 1);
  CHECK(faults[0].starts_with("the number of operators is 0, allowed is 1 to"));
}

TEST_CASE("network: layers that are each a graph of their own") {
  Network network = small_network();
  network.input_std = 0.5;
  network.layers.push_back(network.layers[0]);
  network.layers[1].name = "second";
  network.layers[1].shape.epilogue.residual = true;
  network.layers[1].shape.epilogue.pool =
      Pool{.kind = PoolKind::max, .kernel_h = 2, .kernel_w = 2, .stride_h = 2, .stride_w = 2};
  separate_layers(network);
  CHECK(verify(network) == std::vector<std::string>{});
  CHECK(network.separate);
  CHECK(network.input_std == 0.5);
  REQUIRE(network.operators.size() == 2);
  std::vector<std::string> tensors;
  for (const Activations& tensor : network.tensors) tensors.push_back(tensor.name + " " + shape_text(tensor.shape));
  CHECK(tensors == std::vector<std::string>{"conv.input 3x8x8", "conv.output 4x8x8", "second.input 3x8x8",
                                            "second.residual 4x8x8", "second.output 4x4x4"});
  CHECK(network.inputs == std::vector<int>{0, 2, 3});
  CHECK(network.outputs == std::vector<int>{1, 4});
  CHECK(network.operators[1].name == "second");
  CHECK(network.operators[1].inputs == std::vector<int>{2, 3});

  network.tensors[4].format.layout = TensorLayout::nchw4;
  network.tensors[3].format.layout = TensorLayout::nchw4;
  const Network second = network_of(network, network.operators[1]);
  CHECK(verify(second) == std::vector<std::string>{});
  CHECK(second.separate);
  CHECK(second.source == network.source);
  CHECK(second.input_std == 0.5);
  REQUIRE(second.layers.size() == 1);
  CHECK(second.layers[0].name == "second");
  CHECK(second.inputs == std::vector<int>{0, 1});
  CHECK(second.outputs == std::vector<int>{2});
  CHECK(second.tensors[1].name == "second.residual");
  CHECK(second.tensors[2].format.layout == TensorLayout::nchw4);
}

TEST_CASE("network: a network of one operator that is no convolution") {
  const Network network = small_network();
  const Network fc = network_of(network, network.operators[4]);
  CHECK(verify(fc) == std::vector<std::string>{});
  CHECK(fc.layers.empty());
  CHECK_FALSE(fc.separate);
  CHECK(fc.tensors[0].name == "flatten_out");
  CHECK(fc.tensors[1].name == "fc_out");
}

TEST_CASE("network: rules of the graph") {
  const auto check = [](auto change, const std::string& part) { expect(network_faults_after(change), part); };
  check([](Network& n) { n.operators[1].name.clear(); }, "an operator without a name");
  check([](Network& n) { n.operators[1].name = "conv"; }, "two of the network's operators are named 'conv'");
  check([](Network& n) { n.tensors[1].name = "data"; }, "two of the network's tensors are named 'data'");
  check([](Network& n) { n.tensors[1].name = std::string(513, 'x'); }, "513 bytes, allowed are 512");
  check([](Network& n) { n.inputs.clear(); }, "the network has no inputs");
  check([](Network& n) { n.outputs.clear(); }, "the network has no outputs");
  check([](Network& n) { n.outputs = {99}; }, "a network output is tensor 99, the network has 7 tensors");
  check([](Network& n) { n.inputs.push_back(n.inputs[0]); }, "tensor 'data' is a network input twice");
  check([](Network& n) { n.outputs.push_back(n.outputs[0]); }, "tensor 'prob_out' is a network output twice");
  check([](Network& n) { n.outputs = n.inputs; }, "tensor 'data' is both an input and an output of the network");
  check([](Network& n) { n.tensors[0].shape = {3, 0, 8}; }, "network input 'data' is 3x0x8");
  check([](Network& n) { n.operators[1].inputs[0] = -1; }, "operator 'relu' (elementwise): an input is tensor -1");
  check([](Network& n) { n.operators[1].output = 7; }, "operator 'relu' (elementwise): its output is tensor 7");
  check([](Network& n) { std::swap(n.operators[0], n.operators[1]); },
        "operator 'relu' (elementwise): it reads tensor 'conv_out', which no operator before it makes");
  check([](Network& n) { n.operators[1].inputs[0] = n.operators[1].output; },
        "operator 'relu' (elementwise): it reads tensor 'relu_out', which no operator before it makes");
  check([](Network& n) { n.operators[1].output = 0; }, "it makes tensor 'data', which another operator makes");
  check([](Network& n) { n.operators[1].output = 0; }, "tensor 'relu_out' is made by no operator");
  check([](Network& n) { n.tensors[2].shape = {4, 8, 9}; },
        "its output 'relu_out' is 4x8x9, it follows from its inputs that it is 4x8x8");
  check([](Network& n) { n.layers[0].weights.pop_back(); }, "layer 'conv': there are 107 weights");
  check([](Network& n) { n.layers.push_back(n.layers[0]); }, "layer 'conv': 0 convolutions use it");
  check([](Network& n) { n.operators[1].kind = Convolution{0}; }, "layer 'conv': 2 convolutions use it");
  check([](Network& n) { n.operators[0].kind = Convolution{1}; }, "the layer's index is 1, the network has 1 layers");
  check([](Network& n) { n.operators[0].kind = Convolution{-1}; }, "the layer's index is -1");
  check([](Network& n) { n.layers[0].shape.in_h = 9; }, "its input is 3x8x8, its layer takes 3x9x8");
  check([](Network& n) { n.layers[0].shape.epilogue.residual = true; },
        "operator 'conv' (convolution): it has 1 inputs, its layer takes 2: the second is added as its residual");
  check([](Network& n) { n.operators[0].inputs = {0, 0}; }, "it has 2 inputs, its layer takes 1");
  check(
      [](Network& n) {
        n.layers[0].shape.epilogue.residual = true;
        n.operators[0].inputs = {0, 0};
      },
      "its residual is 3x8x8, it must be shaped like its output 4x8x8");
  check([](Network& n) { n.operators.resize(kMaxOperators + 1, n.operators.back()); },
        "the number of operators is 100001, allowed is 1 to 100000 (kMaxOperators)");
}

TEST_CASE("network: rules of linear layers") {
  const auto check = [](auto change, const std::string& part) {
    Linear linear{.in_features = 4, .out_features = 3, .weights = std::vector<float>(12), .bias = {}};
    change(linear);
    expect(faults_of(linear, {{4}}), part);
  };
  CHECK(shape_of(Linear{4, 3, std::vector<float>(12), {1, 2, 3}}, {{4}}) == std::vector<std::int64_t>{3});
  check([](Linear& l) { l.in_features = 0; }, "in_features is 0, allowed is 1 to");
  check([](Linear& l) { l.out_features = -1; }, "out_features is -1, allowed is 1 to");
  check([](Linear& l) { l.in_features = l.out_features = 1 << 28; }, "(kMaxLayerWeights)");
  check([](Linear& l) { l.weights.pop_back(); }, "there are 11 weights, 3 x 4 features need 12");
  check([](Linear& l) { l.bias = {1}; }, "there are 1 biases, allowed are none or 3");
  check([](Linear& l) { l.weights[5] = kFloatInfinity; },
        "1 of the weights are not finite; the first is element 5 (inf)");
  check([](Linear& l) { l.bias = {0, 0, kFloatInfinity}; }, "1 of the biases are not finite");
  check([](Linear& l) { l.function = Elementwise{static_cast<ElementFunction>(99)}; },
        "function is 99, allowed is one of relu, ");
  check([](Linear& l) { l.function = Elementwise{ElementFunction::clip, 0, kFloatInfinity}; }, "beta is inf");
  expect(faults_of(Linear{4, 1, std::vector<float>(4), {}}, {{4, 1, 1}}),
         "its input is 4x1x1, it takes 4 flat features");
}

TEST_CASE("network: rules of element-wise operators") {
  CHECK(shape_of(ChannelAffine{{1, 2}, {3, 4}}, {{2, 5, 7}}) == std::vector<std::int64_t>{2, 5, 7});
  expect(faults_of(ChannelAffine{{1}, {3, 4}}, {{2, 5, 7}}), "there are 1 scales and 2 shifts, its input 2x5x7 has 2");
  expect(faults_of(ChannelAffine{{1, kFloatInfinity}, {3, 4}}, {{2}}), "1 of the scales are not finite");
  expect(faults_of(ChannelAffine{{1, 2}, {3, kFloatInfinity}}, {{2}}), "1 of the shifts are not finite");
  CHECK(shape_of(Elementwise{ElementFunction::clip, 0, kFloatInfinity}, {{7}}) == std::vector<std::int64_t>{7});
  expect(faults_of(Elementwise{ElementFunction::clip, 2, 1}, {{7}}), "it clips from 2 to 1: nothing lies between");
  expect(faults_of(Elementwise{ElementFunction::leaky_relu, kFloatInfinity, 0}, {{7}}), "alpha is inf and beta is 0");
  expect(faults_of(Elementwise{static_cast<ElementFunction>(99), 0, 0}, {{7}}), "function is 99, which is none");
  expect(faults_of(Elementwise{}, {}), "it has 0 inputs, it takes 1");
  CHECK(shape_of(Combine{}, {{2, 3, 4}, {2, 1, 1}}) == std::vector<std::int64_t>{2, 3, 4});
  expect(faults_of(Combine{}, {{2, 1, 1}, {2, 3, 4}}),
         "its inputs are 2x1x1 and 2x3x4; along each axis the second must have as many values as the first, or one");
  expect(faults_of(Combine{}, {{2}}), "it has 1 inputs, it takes 2");
  expect(faults_of(Combine{static_cast<Combination>(99)}, {{2}, {2}}), "combination is 99, which is none");
  expect(faults_of(Elementwise{ElementFunction::celu, 0}, {{2}}), "the alpha of celu is 0");
}

TEST_CASE("network: rules of constants, reductions and normalizations") {
  Combine op;
  op.constant = ConstantOperand{{2, 1, 4}, {1, 2, 3, 4, 5, 6, 7, 8}};
  CHECK(shape_of(op, {{2, 3, 4}}) == std::vector<std::int64_t>{2, 3, 4});
  expect(faults_of(op, {{2, 3, 4}, {2, 3, 4}}), "it has 2 inputs, it takes 1 beside its constant");
  expect(faults_of(op, {{3, 3, 4}}), "its inputs are 3x3x4 and 2x1x4");
  expect(faults_of(op, {{2, 4}}), "its inputs are 2x4 and 2x1x4");
  op.constant->values.pop_back();
  expect(faults_of(op, {{2, 3, 4}}), "its constant is 2x1x4 and has 7 values");
  op.constant = ConstantOperand{{1}, {std::numeric_limits<float>::quiet_NaN()}};
  expect(faults_of(op, {{2}}), "its constant");

  CHECK(shape_of(Reduce{Statistic::sum, {0, 2}}, {{2, 3, 4}}) == std::vector<std::int64_t>{1, 3, 1});
  for (const std::vector<int>& axes : {std::vector<int>{}, {3}, {-1}, {1, 0}, {1, 1}}) {
    expect(faults_of(Reduce{Statistic::sum, axes}, {{2, 3, 4}}), "they must be ascending, at least one, from 0 to 2");
    expect(faults_of(Normalize{Normalization::softmax, axes}, {{2, 3, 4}}), "they must be ascending");
  }
  expect(faults_of(Reduce{static_cast<Statistic>(99), {0}}, {{2}}), "statistic is 99, which is none");
  expect(faults_of(Normalize{static_cast<Normalization>(99), {0}}, {{2}}), "normalization is 99, which is none");
  expect(faults_of(Normalize{Normalization::deviation, {0}, -1}, {{2}}), "epsilon is -1");
  Normalize scaled{Normalization::deviation, {0}};
  scaled.scale = ConstantOperand{{2, 1}, {1, 2}};
  CHECK(shape_of(scaled, {{2, 3}}) == std::vector<std::int64_t>{2, 3});
  expect(faults_of(scaled, {{3, 3}}), "its scale or shift is 2x1, its input 3x3");
  scaled.shift = ConstantOperand{{1, 1}, {1}};
  expect(faults_of(scaled, {{2, 3}}), "its scale is 2x1 and its shift 1x1; they must have one shape");
}

TEST_CASE("network: sizes of pooling") {
  Pool pool = pool_of(3, 2, 0);
  CHECK(shape_of(pool, {{5, 8, 7}}) == std::vector<std::int64_t>{5, 3, 3});
  pool.round_up = true;
  CHECK(shape_of(pool, {{5, 8, 7}}) == std::vector<std::int64_t>{5, 4, 3});
  // Rounded up, the third window would begin behind the last row: it is left out.
  pool = pool_of(2, 2, 1);
  pool.round_up = true;
  CHECK(shape_of(pool, {{1, 3, 4}}) == std::vector<std::int64_t>{1, 2, 3});
  pool = pool_of(2, 1, 0);
  pool.dilation_h = 3;
  CHECK(shape_of(pool, {{1, 6, 6}}) == std::vector<std::int64_t>{1, 3, 5});
  CHECK(shape_of(GlobalAveragePool{}, {{5, 8, 7}}) == std::vector<std::int64_t>{5, 1, 1});
}

TEST_CASE("network: rules of squeeze-and-excitation") {
  const Squeeze squeeze{2, std::vector<float>(10, 0.5F), 2, 20};
  CHECK(shape_of(squeeze, {{5, 8, 7}}) == std::vector<std::int64_t>{9, 2});  // 2 + 2 + 1 channels, 20 + 20 + 16 pixels
  expect(faults_of(squeeze, {{5}}), "its input is 5, it takes channels x rows x columns");
  expect(faults_of(squeeze, {{4, 8, 7}}), "there are 10 weights, 2 x 4 features need 8");
  expect(faults_of(Squeeze{2, squeeze.weights, 0, 20}, {{5, 8, 7}}), "part_channels is 0");
  expect(faults_of(Squeeze{2, squeeze.weights, 2, 0}, {{5, 8, 7}}), "part_pixels is 0");
  const Excite excite{{}, {}, {2, 5, std::vector<float>(10, 0.5F), {}}};
  CHECK(shape_of(excite, {{5, 8, 7}, {9, 2}}) == std::vector<std::int64_t>{5, 8, 7});
  expect(faults_of(excite, {{5, 8, 7}}), "it has 1 inputs, it takes 2");
  expect(faults_of(excite, {{5}, {9, 2}}), "its input is 5, it takes an image");
  expect(faults_of(excite, {{4, 8, 7}, {9, 2}}), "its input is 4x8x7, its layer gives 5 channels");
  expect(faults_of(excite, {{5, 8, 7}, {9, 3}}), "its second input is 9x3, it takes parts of 2 features");
  expect(faults_of(excite, {{5, 8, 7}, {18}}), "its second input is 18, it takes parts of 2 features");
  expect(faults_of(Excite{{1}, {}, excite.expand}, {{5, 8, 7}, {9, 2}}), "there are 1 biases, allowed are none or 2");
}

TEST_CASE("network: rules of products of matrices") {
  using Shape = std::vector<std::int64_t>;
  CHECK(shape_of(MatMul{}, {{3, 4}, {4, 5}}) == Shape{3, 5});
  CHECK(shape_of(MatMul{}, {{2, 1, 3, 4}, {1, 6, 4, 5}}) == Shape{2, 6, 3, 5});
  MatMul turned;
  turned.right_order = {2, 0, 1};
  CHECK(shape_of(turned, {{2, 3, 4}, {4, 5, 2}}) == Shape{2, 3, 5});
  expect(faults_of(turned, {{2, 3, 4}, {4, 5}}), "order is 2,0,1, it must name each axis of its tensor 4x5 once");
  expect(faults_of(MatMul{}, {{3, 4}}), "it has 1 inputs, it takes 2");
  expect(faults_of(MatMul{}, {{3, 4}, {5, 4}}), "it multiplies 3x4 by 5x4; both must have as many axes");
  expect(faults_of(MatMul{}, {{4}, {4}}), "as many axes, two or more");
  expect(faults_of(MatMul{}, {{2, 3, 4}, {4, 5}}), "it multiplies 2x3x4 by 4x5");
  expect(faults_of(MatMul{}, {{2, 3, 4}, {3, 4, 5}}), "which have 2 and 3 matrices along axis 0");
  MatMul constant;
  constant.constant = ConstantOperand{{4, 2}, std::vector<float>(8, 1)};
  CHECK(shape_of(constant, {{3, 4}}) == Shape{3, 2});
  expect(faults_of(constant, {{3, 4}, {4, 5}}), "it has 2 inputs, it takes 1 beside its constant");
  constant.constant_first = true;
  CHECK(shape_of(constant, {{2, 3}}) == Shape{4, 3});
  constant.left_order = {1, 0};
  expect(faults_of(constant, {{2, 3}}), "order is 1,0");
  constant.left_order.clear();
  constant.scale = kFloatInfinity;
  expect(faults_of(constant, {{2, 3}}), "its scale is inf, it must be finite");
  constant.scale = 1;
  constant.constant->values.pop_back();
  expect(faults_of(constant, {{2, 3}}), "its constant is 4x2 and has 7 values");
}

TEST_CASE("network: rules of pooling") {
  const auto check = [](auto change, const std::string& part) {
    Pool pool = pool_of(2, 2, 0);
    change(pool);
    expect(faults_of(pool, {{3, 8, 8}}), part);
  };
  check([](Pool& p) { p.kernel_h = 0; }, "kernel_h is 0, allowed is 1 to 1024 (kMaxPoolExtent)");
  check([](Pool& p) { p.kernel_w = 1025; }, "kernel_w is 1025");
  check([](Pool& p) { p.stride_h = 0; }, "stride_h is 0");
  check([](Pool& p) { p.stride_w = -5; }, "stride_w is -5");
  check([](Pool& p) { p.dilation_h = 65; }, "dilation_h is 65, allowed is 1 to 64 (kMaxStride)");
  check([](Pool& p) { p.dilation_w = 0; }, "dilation_w is 0");
  check([](Pool& p) { p.pad.top = -1; }, "pad top is -1, allowed is 0 to 1024 (kMaxPadding)");
  check([](Pool& p) { p.pad.right = 1025; }, "pad right is 1025");
  check([](Pool& p) { p.kind = static_cast<PoolKind>(3); }, "kind is 3, which is none");
  check([](Pool& p) { p.kernel_h = 9; }, "the output has no rows: 8 with pad 0 + 0 are less than the 9");
  check([](Pool& p) { p.kernel_w = 9; }, "the output has no columns");
  check([](Pool& p) { p.pad = {2, 0, 0, 0}; }, "the window of output row 0 lies in the padding alone");
  check([](Pool& p) { p.pad = {0, 0, 0, 2}; }, "the window of output column 4 lies in the padding alone");
  expect(faults_of(pool_of(2, 2, 0), {{24}}), "its input is 24, it takes channels x rows x columns");
  expect(faults_of(GlobalAveragePool{}, {{24}}), "its input is 24, it takes channels x rows x columns");
  // Dilated windows can step over a small image.
  Pool over = pool_of(2, 1, 1);
  over.dilation_h = over.dilation_w = 2;
  expect(faults_of(over, {{1, 1, 1}}), "the window of output row 0 lies in the padding alone");
}

TEST_CASE("network: rules of LRN and padding") {
  CHECK(shape_of(Lrn{5, 1e-4F, 0.75F, 1}, {{96, 5, 5}}) == std::vector<std::int64_t>{96, 5, 5});
  expect(faults_of(Lrn{0, 1e-4F, 0.75F, 1}, {{96, 5, 5}}), "size is 0, allowed is 1 to 65536");
  expect(faults_of(Lrn{5, -1, 0.75F, 1}, {{96, 5, 5}}), "alpha is -1, it must be finite and 0 or more");
  expect(faults_of(Lrn{5, 1, kFloatInfinity, 1}, {{96, 5, 5}}), "beta is inf");
  expect(faults_of(Lrn{5, 1, 1, 0}, {{96, 5, 5}}), "bias is 0, it must be finite and more than 0");
  expect(faults_of(Lrn{}, {{96}}), "it takes channels x rows x columns");
  CHECK(shape_of(Pad{{1, 2, 3, 4}, 0}, {{2, 5, 6}}) == std::vector<std::int64_t>{2, 8, 13});
  expect(faults_of(Pad{{0, -1, 0, 0}, 0}, {{2, 5, 6}}), "pad bottom is -1");
  expect(faults_of(Pad{{0, 0, 2000, 0}, 0}, {{2, 5, 6}}), "pad left is 2000");
  expect(faults_of(Pad{{}, kFloatInfinity}, {{2, 5, 6}}), "value is inf, it must be finite");
}

TEST_CASE("network: rules of shapes") {
  CHECK(shape_of(Concat{0}, {{2, 5, 6}, {3, 5, 6}}) == std::vector<std::int64_t>{5, 5, 6});
  CHECK(shape_of(Concat{2}, {{2, 5, 6}, {2, 5, 1}}) == std::vector<std::int64_t>{2, 5, 7});
  CHECK(shape_of(ChannelView{1, 2}, {{3, 5, 6}}) == std::vector<std::int64_t>{2, 5, 6});
  CHECK(shape_of(ChannelView{2, 1}, {{3}}) == std::vector<std::int64_t>{1});
  for (const ChannelView& view :
       {ChannelView{-1, 2}, ChannelView{0, 0}, ChannelView{2, 2}, ChannelView{1, std::numeric_limits<int>::max()}}) {
    expect(faults_of(view, {{3, 5, 6}}), "its input 3x5x6 has 3");
  }
  expect(faults_of(Concat{3}, {{2, 5, 6}}), "axis is 3, allowed is 0 to 2");
  expect(faults_of(Concat{0}, {}), "it has 0 inputs, allowed are 1 to 4096 (kMaxOperatorInputs)");
  expect(faults_of(Concat{0}, {{2, 5, 6}, {2, 5, 7}}),
         "its inputs 0 and 1 are 2x5x6 and 2x5x7; they may differ in axis 0");
  expect(faults_of(Concat{0}, {{2, 5, 6}, {2, 30}}), "its inputs 0 and 1 are 2x5x6 and 2x30");
  CHECK(shape_of(Reshape{{30, 2}}, {{2, 5, 6}}) == std::vector<std::int64_t>{30, 2});
  expect(faults_of(Reshape{{31}}, {{2, 5, 3}}), "the new shape 31 has 31 elements, its input 2x5x3 has 30");
  expect(faults_of(Reshape{{}}, {{1}}), "the new shape has 0 axes, allowed are 1 to 6 (kMaxActivationRank)");
  expect(faults_of(Reshape{{-1, -2, 15}}, {{30}}), "the new shape is -1x-2x15, every axis must be 1 or more");
  CHECK(shape_of(Pick{{{1, 0, 4}, {4, -2, 3}, {5, 1, 1}}}, {{2, 5, 6}}) == std::vector<std::int64_t>{4, 3, 1});
  CHECK(shape_of(Pick{{{1, 0, 4}, {4, -2, 3}, {5, 1, 1}}, {2, 0, 1}}, {{2, 5, 6}}) ==
        std::vector<std::int64_t>{1, 4, 3});
  expect(faults_of(Pick{{{0, 1, 2}, {0, 1, 5}}, {1, 1}}, {{2, 5}}), "it must name each axis of its input 2x5 once");
  expect(faults_of(Pick{{{0, 1, 2}}}, {{2, 5}}), "it says what it takes of 1 axes, its input is 2x5");
  for (const PickedAxis& axis : {PickedAxis{0, 1, 6},
                                 {5, 1, 1},
                                 {-1, 1, 1},
                                 {0, -1, 2},
                                 {0, 1, 0},
                                 {0, 1, -1},
                                 {0, std::numeric_limits<std::int64_t>::max(), 2},
                                 {4, std::numeric_limits<std::int64_t>::min(), 2}}) {
    expect(faults_of(Pick{{{0, 1, 2}, axis}}, {{2, 5}}), "of axis 1 it takes");
  }
  const Taps two{2, {0, 1, 4, 4}, {1, 2, 3, 4}}, three{1, {0, -1, 5}, {1, 1, 1}};
  CHECK(shape_of(Resample{two, three}, {{2, 5, 6}}) == std::vector<std::int64_t>{2, 2, 3});
  expect(faults_of(Resample{two, three}, {{2, 4, 6}}), "its rows take index 4, its input has 4");
  expect(faults_of(Resample{two, three}, {{2, 5, 5}}), "its columns take index 5, its input has 5");
  expect(faults_of(Resample{two, three}, {{5}}), "it takes channels x rows x columns");
  expect(faults_of(Resample{{2, {0, 1, 2}, {1, 1, 1}}, three}, {{2, 5, 6}}), "its rows have 3 indices and 3 weights");
  expect(faults_of(Resample{{1, {0}, {}}, three}, {{2, 5, 6}}), "its rows have 1 indices and 0 weights");
  expect(faults_of(Resample{{0, {0}, {1}}, three}, {{2, 5, 6}}), "(kMaxTaps)");
  expect(faults_of(Resample{{1, {0}, {kFloatInfinity}}, three}, {{2, 5, 6}}), "weights of its rows");
  expect(faults_of(Resample{two, three, kFloatInfinity}, {{2, 5, 6}}), "the value outside is inf");
  CHECK(shape_of(Transpose{{2, 0, 1}}, {{2, 5, 6}}) == std::vector<std::int64_t>{6, 2, 5});
  expect(faults_of(Transpose{{0, 0, 1}}, {{2, 5, 6}}),
         "order is 0,0,1, it must name each axis of its input 2x5x6 once");
  expect(faults_of(Transpose{{0, 1}}, {{2, 5, 6}}), "from 0 to 2");
  expect(faults_of(Identity{}, {{1, 1, 1, 1, 1, 1, 1}}), "its input 0 has 7 axes, allowed are 1 to 6");
  expect(faults_of(Softmax{}, {{0}}), "its input 0 is 0, every axis must be 1 or more");
}

TEST_CASE("network: absurd sizes do not overflow") {
  constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();
  CHECK(Activations{"x", {kLargest, kLargest, 3}}.elements() == kLargest);
  expect(faults_of(Identity{}, {{kLargest, kLargest}}), "(kMaxImageBytes: offsets have 32 bits)");
  expect(faults_of(Reshape{{kLargest, kLargest, kLargest}}, {{5}}), "(kMaxImageBytes: offsets have 32 bits)");
  expect(faults_of(Concat{0}, {{1 << 28}, {1 << 28}, {1 << 28}}), "its output is 805306368");
  expect(faults_of(Pad{{1024, 1024, 1024, 1024}, 0}, {{1 << 10, 100, 100}}), "its output is 1024x2148x2148");
  Pool pool = pool_of(1, 1, 0);
  pool.kernel_h = pool.stride_w = pool.dilation_h = pool.pad.top = std::numeric_limits<int>::max();
  CHECK(faults_of(pool, {{3, 8, 8}}).size() == 4);
}

TEST_CASE("network: table") {
  const std::string text = print(small_network());
  CHECK(text ==
        "# inputs: data; outputs: prob_out\n"
        "conv     convolution  data -> conv_out         3x8x8 -> 4x8x8  3x3, stride 1, pad 1, 0.0 % zero, bias\n"
        "relu     elementwise  conv_out -> relu_out     4x8x8 -> 4x8x8  relu\n"
        "pool     pool         relu_out -> pool_out     4x8x8 -> 4x4x4  max 2x2, stride 2, pad 0\n"
        "flatten  reshape      pool_out -> flatten_out  4x4x4 -> 64\n"
        "fc       linear       flatten_out -> fc_out    64 -> 2         0.0 % zero\n"
        "prob     softmax      fc_out -> prob_out       2 -> 2\n");
}

TEST_CASE("network: names from files are printed harmlessly, and damaged graphs print") {
  Network network = small_network();
  network.operators[1].name = "re\x1b[31mlu";
  network.operators[1].inputs = {77};
  network.operators[0].kind = Convolution{5};
  const std::string text = print(network);
  CHECK(text.find('\x1b') == std::string::npos);
  CHECK(text.find("?77 -> relu_out") != std::string::npos);
  CHECK(text.find("layer 5") != std::string::npos);
}

TEST_CASE("network: every kind of operator has its own name") {
  std::vector<std::string_view> names = {kind_name(Convolution{}),
                                         kind_name(Linear{}),
                                         kind_name(ChannelAffine{}),
                                         kind_name(Elementwise{}),
                                         kind_name(Combine{}),
                                         kind_name(Pool{}),
                                         kind_name(GlobalAveragePool{}),
                                         kind_name(Lrn{}),
                                         kind_name(Softmax{}),
                                         kind_name(Concat{}),
                                         kind_name(ChannelView{}),
                                         kind_name(Pad{}),
                                         kind_name(Reshape{}),
                                         kind_name(Transpose{}),
                                         kind_name(Identity{}),
                                         kind_name(Pick{}),
                                         kind_name(Resample{}),
                                         kind_name(Squeeze{}),
                                         kind_name(Excite{}),
                                         kind_name(MatMul{})};
  CHECK(names ==
        std::vector<std::string_view>{
            "convolution", "linear",  "channel_affine", "elementwise",  "combine", "pool",    "global_average_pool",
            "lrn",         "softmax", "concat",         "channel_view", "pad",     "reshape", "transpose",
            "identity",    "pick",    "resample",       "squeeze",      "excite",  "matmul"});
}
