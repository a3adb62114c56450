// Functions that are spelled as several operators: which are known, and what must stay.
#include "test/network/pass_checks.h"

using namespace burin;
using namespace burin_test;

namespace {

constexpr auto gelu = ElementFunction::gelu, gelu_tanh = ElementFunction::gelu_tanh, mish = ElementFunction::mish,
               softplus = ElementFunction::softplus, softsign = ElementFunction::softsign, silu = ElementFunction::silu,
               hard_swish = ElementFunction::hard_swish;
const Elementwise kSigmoid{ElementFunction::sigmoid}, kErf{ElementFunction::erf}, kTanh{ElementFunction::tanh};

ChannelAffine affine(float scale, float shift) { return {{scale, scale}, {shift, shift}}; }
constexpr float kRootOfTwo = 1.41421356F, kGeluFactor = 0.7978845608F;

// A spelling: from x to the tensor that holds the function.
using Spelling = int (*)(GraphBuilder& graph, int x);

int gelu_by_erf(GraphBuilder& graph, int x) {
  const int erf_of = graph.add("erf", kErf, {graph.add("div", affine(1 / kRootOfTwo, 0), {x})});
  const int product = graph.add("mul", Combine{Combination::multiply}, {x, graph.add("one", affine(1, 1), {erf_of})});
  return graph.add("half", affine(0.5F, 0), {product});
}
int gelu_half_first(GraphBuilder& graph, int x) {
  const int erf_of = graph.add("erf", kErf, {graph.add("div", affine(1 / kRootOfTwo, 0), {x})});
  const int half = graph.add("half", affine(0.5F, 0), {x});
  return graph.add("mul", Combine{Combination::multiply}, {half, graph.add("one", affine(1, 1), {erf_of})});
}
int gelu_by_power(GraphBuilder& graph, int x) {
  const int cube = graph.add("cube", Elementwise{ElementFunction::power, 3, 0}, {x});
  const int sum = graph.add("sum", Combine{}, {x, graph.add("scaled", affine(0.044715F, 0), {cube})});
  const int tanh_of = graph.add("tanh", kTanh, {graph.add("angle", affine(kGeluFactor, 0), {sum})});
  const int half = graph.add("half", affine(0.5F, 0), {x});
  return graph.add("mul", Combine{Combination::multiply}, {half, graph.add("one", affine(1, 1), {tanh_of})});
}
int mish_by_softplus(GraphBuilder& graph, int x) {
  const int tanh_of = graph.add("tanh", kTanh, {graph.add("plus", Elementwise{ElementFunction::softplus}, {x})});
  return graph.add("mul", Combine{Combination::multiply}, {x, tanh_of});
}
int softplus_by_log(GraphBuilder& graph, int x) {
  const int exp_of = graph.add("exp", Elementwise{ElementFunction::exp}, {x});
  return graph.add("log", Elementwise{ElementFunction::log}, {graph.add("one", affine(1, 1), {exp_of})});
}
int softsign_by_quotient(GraphBuilder& graph, int x) {
  const int one_more = graph.add("one", affine(1, 1), {graph.add("abs", Elementwise{ElementFunction::absolute}, {x})});
  return graph.add("div", Combine{Combination::divide}, {x, one_more});
}
int swish(GraphBuilder& graph, int x) {
  return graph.add("mul", Combine{Combination::multiply}, {graph.add("gate", kSigmoid, {x}), x});
}
int hard_swish_by_gate(GraphBuilder& graph, int x) {
  const int gate = graph.add("gate", Elementwise{ElementFunction::hard_sigmoid, 1 / 6.0F, 0.5F}, {x});
  return graph.add("mul", Combine{Combination::multiply}, {x, gate});
}
int hard_swish_by_clip(GraphBuilder& graph, int x) {
  const int clipped =
      graph.add("clip", Elementwise{ElementFunction::clip, 0, 6}, {graph.add("add", affine(1, 3), {x})});
  const int product = graph.add("mul", Combine{Combination::multiply}, {x, clipped});
  return graph.add("div", affine(1 / 6.0F, 0), {product});
}

}  // namespace

TEST_CASE("name_functions: every spelling becomes the function") {
  const std::pair<Spelling, ElementFunction> all[] = {
      {gelu_by_erf, gelu},
      {gelu_half_first, gelu},
      {gelu_by_power, gelu_tanh},
      {mish_by_softplus, mish},
      {softplus_by_log, softplus},
      {softsign_by_quotient, softsign},
      {swish, silu},
      {hard_swish_by_gate, hard_swish},
      {hard_swish_by_clip, hard_swish},
  };
  for (const auto& [spelling, function] : all) {
    INFO(to_string(function));
    GraphBuilder graph;
    const int x = graph.add("before", Softmax{}, {graph.input({2, 4, 4})});
    const Network network = graph.finish({spelling(graph, x)});
    const Network result = after(name_functions, network, 1);
    CHECK(kinds(result) == "softmax elementwise");
    CHECK(std::get<Elementwise>(result.operators.at(1).kind).function == function);
    CHECK(result.tensors[static_cast<std::size_t>(result.outputs[0])].name == network.tensors.back().name);
  }
}

TEST_CASE("name_functions: a swish goes on into the convolution before it") {
  GraphBuilder graph;
  const int y = graph.convolution(conv("c", 2, 2), {graph.input({2, 4, 4})});
  const Network result = simplify(graph.finish({swish(graph, y)}));
  CHECK(kinds(result) == "convolution");
  CHECK(result.layers[0].shape.epilogue.function == function_of(Activation::silu));
}

TEST_CASE("name_functions: a part that others read, or that is an output, stays") {
  const auto network = [](bool output) {
    GraphBuilder graph;
    const int x = graph.input({2, 4, 4});
    const int gate = graph.add("gate", kSigmoid, {x});
    const int out = graph.add("mul", Combine{Combination::multiply}, {x, gate});
    return graph.finish({out, output ? gate : graph.add("pool", GlobalAveragePool{}, {gate})});
  };
  unchanged(name_functions, network(false));
  unchanged(name_functions, network(true));
}

TEST_CASE("name_functions: other functions, of other tensors or by channel, stay") {
  GraphBuilder gate_of_another;
  const int x = gate_of_another.input({2, 4, 4}), y = gate_of_another.input({2, 4, 4});
  const int gate = gate_of_another.add("gate", kSigmoid, {y});
  unchanged(name_functions,
            gate_of_another.finish({gate_of_another.add("mul", Combine{Combination::multiply}, {x, gate})}));
  GraphBuilder slower;  // x sigmoid(1.01 x) is near silu
  const int z = slower.input({2, 4, 4});
  const int near = slower.add("gate", kSigmoid, {slower.add("scaled", affine(1.01F, 0), {z})});
  unchanged(name_functions, slower.finish({slower.add("mul", Combine{Combination::multiply}, {z, near})}));
  GraphBuilder by_channel;
  const int w = by_channel.input({2, 4, 4});
  const int own = by_channel.add("scaled", ChannelAffine{{1, 2}, {0, 0}}, {w});
  const int of_own = by_channel.add("gate", kSigmoid, {own});
  unchanged(name_functions, by_channel.finish({by_channel.add("mul", Combine{Combination::multiply}, {w, of_own})}));
}
