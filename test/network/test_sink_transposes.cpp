// Transposes that operators pass, and those that stay.
#include "test/network/pass_checks.h"

using namespace burin;
using namespace burin_test;

namespace {

const Transpose kToLast{{1, 2, 0}}, kToFirst{{2, 0, 1}};

// Channels, of 3, last; the operator; channels first again.
Network between(const OperatorKind& kind) {
  GraphBuilder graph;
  const int x = graph.add("there", kToLast, {graph.input({3, 4, 5})});
  return graph.finish({graph.add("back", kToFirst, {graph.add("op", kind, {x})})});
}

ConstantOperand numbers(const std::vector<std::int64_t>& shape) {
  ConstantOperand made{shape, {}};
  for (std::int64_t i = 0; i < shape[0] * shape[1] * shape[2]; ++i) {
    made.values.push_back(0.5F + 0.25F * static_cast<float>(i));
  }
  return made;
}

}  // namespace

TEST_CASE("sink_transposes: what works on axes works on others before the transpose") {
  Normalize layer{Normalization::deviation, {2}, 0.1F};
  layer.scale = layer.shift = numbers({1, 1, 3});
  const Network normal = simplify(between(layer));
  CHECK(kinds(normal) == "normalize");
  const auto& normalize = std::get<Normalize>(normal.operators[0].kind);
  CHECK(normalize.axes == std::vector<int>{0});
  CHECK(normalize.scale->shape == std::vector<std::int64_t>{3, 1, 1});
  CHECK(normal.tensors[static_cast<std::size_t>(normal.outputs[0])].name == "back_out");
  const Network reduced = simplify(between(Reduce{Statistic::sum, {0, 2}}));
  CHECK(std::get<Reduce>(reduced.operators[0].kind).axes == std::vector<int>{0, 1});
  Combine whole{Combination::larger};
  whole.constant = numbers({4, 5, 3});
  for (const OperatorKind& kind : std::initializer_list<OperatorKind>{layer, Reduce{Statistic::sum, {0, 2}}, whole,
                                                                      Elementwise{ElementFunction::gelu}}) {
    INFO(kind_name(kind));
    after(sink_transposes, between(kind), 2);  // passed, then one with the other
    CHECK(kinds(simplify(between(kind))) == std::string(kind_name(kind)));
  }
}

TEST_CASE("sink_transposes: a number for each value of the last axis becomes one for each channel") {
  for (const Combination combination : {Combination::add, Combination::multiply}) {
    Combine op{combination};
    op.constant = numbers({1, 1, 3});
    CHECK(kinds(after(sink_transposes, between(op), 2)) == "channel_affine transpose");
    Combine by_row = op;
    by_row.constant = numbers({4, 1, 1});
    CHECK(kinds(after(sink_transposes, between(by_row), 2)) == "combine transpose");
  }
  after(sink_transposes, between(ChannelAffine{{2, 2, 2, 2}, {1, 1, 1, 1}}), 2);
}

TEST_CASE("sink_transposes: products read what was transposed, and others the transposed tensor") {
  GraphBuilder graph;
  const int x = graph.input({9, 3, 10});
  const int heads = graph.add("heads", Transpose{{1, 0, 2}}, {x});
  const int keys = graph.add("keys", Transpose{{0, 2, 1}}, {heads});
  const int scores = graph.add("scores", MatMul{}, {heads, keys});
  const Network direct = simplify(graph.finish({graph.add("mixed", MatMul{}, {scores, heads})}));
  CHECK(kinds(direct) == "matmul matmul");
  const auto& product = std::get<MatMul>(direct.operators[0].kind);
  CHECK(product.left_order == std::vector<int>{1, 0, 2});
  CHECK(product.right_order == std::vector<int>{1, 2, 0});
  CHECK(direct.operators[0].inputs == std::vector<int>{direct.inputs[0], direct.inputs[0]});
  GraphBuilder other;
  const int y = other.input({6, 5});
  const int turned = other.add("turned", Transpose{{1, 0}}, {y});
  MatMul by;
  by.constant_first = true;
  by.constant = ConstantOperand{{2, 5}, std::vector<float>(10, 0.5F)};
  const int made = other.add("made", by, {turned});
  const Network kept = after(sink_transposes, other.finish({made, turned}), 1);
  CHECK(std::get<MatMul>(kept.operators.back().kind).right_order == std::vector<int>{1, 0});
}

TEST_CASE("sink_transposes: what is transposed alike is joined before, and others read what they did") {
  // A residual block whose channels are the last axis: all transposes go but the one at the end.
  GraphBuilder graph;
  const int x = graph.input({3, 4, 5}), there = graph.add("there", kToLast, {x});
  const int back = graph.add("back", kToFirst, {there});
  const int made = graph.add("made", kToLast, {graph.add("tanh", Elementwise{ElementFunction::tanh}, {back})});
  const int sum = graph.add("sum", Combine{}, {there, made});
  const int both = graph.add("both", Concat{2}, {sum, there});
  const Network joined = simplify(graph.finish({graph.add("end", kToFirst, {both})}));
  CHECK(kinds(joined) == "elementwise combine concat");
  CHECK(std::get<Concat>(joined.operators[2].kind).axis == 0);
  // A gate of one value for each channel lies the same either way.
  GraphBuilder gated;
  const int y = gated.add("there", kToLast, {gated.input({3, 4, 5})});
  const int mean = gated.add("mean", Reduce{Statistic::mean, {0, 1}}, {y});
  const int flat = gated.add("flat", Reshape{{3}}, {mean});
  const int gate = gated.add("gate", Reshape{{1, 1, 3}}, {gated.add("softmax", Softmax{}, {flat})});
  const int product = gated.add("product", Combine{Combination::multiply}, {y, gate});
  const Network gates = simplify(gated.finish({gated.add("end", kToFirst, {product})}));
  CHECK(kinds(gates) == "global_average_pool reshape softmax reshape combine");
  // Two that are transposed in different ways stay apart.
  GraphBuilder apart;
  const int z = apart.input({4, 4, 4});
  const int one = apart.add("one", kToLast, {z}), other = apart.add("other", kToFirst, {z});
  unchanged(sink_transposes, apart.finish({apart.add("sum", Combine{}, {one, other})}));
}

TEST_CASE("sink_transposes: layers behind what is flattened have their weights in the order before") {
  GraphBuilder graph;
  const int flat = graph.add("flat", Reshape{{12}}, {graph.add("there", kToLast, {graph.input({3, 2, 2})})});
  Linear layer{12, 2, std::vector<float>(24), {}};
  for (std::size_t i = 0; i < layer.weights.size(); ++i) layer.weights[i] = static_cast<float>(i);
  const Network direct = after(sink_transposes, graph.finish({graph.add("fc", layer, {flat})}), 1);
  CHECK(kinds(direct) == "reshape linear");
  const auto& weights = std::get<Linear>(direct.operators[1].kind).weights;
  CHECK(std::vector<float>(weights.begin(), weights.begin() + 12) ==
        std::vector<float>{0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11});
}

TEST_CASE("sink_transposes: what others read, or what has two tensors or other numbers by channel, stays") {
  unchanged(sink_transposes, between(ChannelAffine{{2, 2, 2, 3}, {1, 1, 1, 1}}));
  unchanged(sink_transposes, between(Softmax{}));
  GraphBuilder graph;
  const int x = graph.add("there", kToLast, {graph.input({3, 4, 5})});
  const int relu = graph.add("relu", Elementwise{}, {x});
  unchanged(sink_transposes, graph.finish({graph.add("sum", Combine{}, {x, relu})}));
}
