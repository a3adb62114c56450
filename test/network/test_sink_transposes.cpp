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

TEST_CASE("sink_transposes: of two transposes with axes merged or split between them one is made") {
  // Heads side by side again, then features first: merged axes that did not follow each other before.
  GraphBuilder merged;
  int x = merged.add("heads", Transpose{{1, 0, 2}}, {merged.input({2, 5, 8})});
  x = merged.add("joined", Reshape{{5, 16}}, {x});
  const Network features = after(sink_transposes, merged.finish({merged.add("first", Transpose{{1, 0}}, {x})}), 1);
  CHECK(kinds(features) == "transpose reshape");
  CHECK(std::get<Transpose>(features.operators[0].kind).order == std::vector<int>{0, 2, 1});
  // Features last, split into three and heads, of which the first comes to the front.
  GraphBuilder split;
  int y = split.add("last", Transpose{{1, 0}}, {split.input({48, 5})});
  y = split.add("parts", Reshape{{5, 3, 2, 8}}, {y});
  const Network parts = after(sink_transposes, split.finish({split.add("front", Transpose{{1, 2, 0, 3}}, {y})}), 1);
  CHECK(kinds(parts) == "reshape transpose");
  CHECK(std::get<Transpose>(parts.operators[1].kind).order == std::vector<int>{0, 1, 3, 2});
  // Parts that are taken out of their axis by the second, and axes that the first has put side by side.
  GraphBuilder mixed;
  int z = mixed.add("there", Transpose{{1, 0, 2}}, {mixed.input({4, 6, 5})});
  z = mixed.add("joined", Reshape{{24, 5}}, {z});
  z = mixed.add("back", Transpose{{1, 0}}, {z});
  CHECK(kinds(after(sink_transposes, mixed.finish({z}), 1)) == "transpose reshape");
  GraphBuilder apart;
  int w = apart.add("there", Transpose{{1, 0}}, {apart.input({6, 4})});
  w = apart.add("split", Reshape{{2, 2, 6}}, {w});
  CHECK(kinds(after(sink_transposes, apart.finish({apart.add("back", Transpose{{0, 2, 1}}, {w})}), 1)) ==
        "reshape transpose");
  GraphBuilder overlapping;
  int v = overlapping.add("there", Transpose{{1, 0}}, {overlapping.input({6, 4})});
  v = overlapping.add("other", Reshape{{8, 3}}, {v});
  unchanged(sink_transposes, overlapping.finish({overlapping.add("back", Transpose{{1, 0}}, {v})}));
}

TEST_CASE("sink_transposes: axes of one element stand anywhere") {
  GraphBuilder graph;
  int x = graph.add("there", Transpose{{2, 0, 1}}, {graph.input({5, 1, 4})});
  x = graph.add("without", Reshape{{4, 5}}, {x});
  CHECK(kinds(simplify(graph.finish({graph.add("back", Transpose{{1, 0}}, {x})}))) == "reshape");
  GraphBuilder more;
  int y = more.add("there", Transpose{{1, 0}}, {more.input({5, 4})});
  y = more.add("with", Reshape{{1, 4, 1, 5, 1}}, {y});
  const Network network = simplify(more.finish({more.add("back", Transpose{{3, 0, 4, 1, 2}}, {y})}));
  CHECK(kinds(network) == "reshape");
}

TEST_CASE("sink_transposes: products read parts of channels and heads as they lie") {
  // Queries, keys and values of one layer, as slices of its last axis or as parts before the batch.
  for (const bool by_slices : {true, false}) {
    GraphBuilder graph;
    const int made = graph.input({3 * 2 * 8, 5});
    int x = graph.add("tokens", Transpose{{1, 0}}, {made});
    if (!by_slices) {
      x = graph.add("parts", Reshape{{5, 3, 2, 8}}, {x});
      x = graph.add("front", Transpose{{1, 2, 0, 3}}, {x});
    }
    std::vector<int> part;
    for (const int i : {0, 1, 2}) {
      const std::string name = "part" + std::to_string(i);
      if (by_slices) {
        const int slice = graph.add(name, Pick{{{0, 1, 5}, {16 * i, 1, 16}}}, {x});
        const int heads = graph.add(name + ".heads", Reshape{{5, 2, 8}}, {slice});
        part.push_back(graph.add(name + ".first", Transpose{{1, 0, 2}}, {heads}));
      } else {
        const int view = graph.add(name, ChannelView{i, 1}, {x});
        part.push_back(graph.add(name + ".alone", Reshape{{2, 5, 8}}, {view}));
      }
    }
    const int keys = graph.add("keys", Transpose{{0, 2, 1}}, {part[1]});
    const int scores = graph.add("scores", MatMul{}, {part[0], keys});
    const int seen = graph.add("seen", MatMul{}, {scores, part[2]});
    const Network direct = simplify(graph.finish({seen}));
    INFO(print(direct));
    CHECK(kinds(direct).find("transpose") == std::string::npos);
    CHECK(kinds(direct).find("pick") == std::string::npos);
  }
}

TEST_CASE("sink_transposes: a stream of sums is transposed once, not by each that is added to it") {
  GraphBuilder graph;
  int x = graph.add("relu", Elementwise{}, {graph.input({5, 4, 6})});  // tokens first, features last
  for (const std::string block : {"a", "b", "c"}) {
    const int normal = graph.add(block + ".norm", Normalize{Normalization::deviation, {2}, 0.1F}, {x});
    const int there = graph.add(block + ".there", Transpose{{2, 0, 1}}, {normal});
    const int made = graph.add(block + ".layer", ChannelAffine{std::vector<float>(6, 2), {1, 2, 3, 4, 5, 6}}, {there});
    x = graph.add(block + ".sum", Combine{}, {x, graph.add(block + ".back", Transpose{{1, 2, 0}}, {made})});
  }
  const Network network = simplify(graph.finish({x}));
  INFO(print(network));
  int transposes = 0;
  for (const Operator& op : network.operators) transposes += std::holds_alternative<Transpose>(op.kind);
  CHECK(transposes == 3);  // to where features are channels, for the sum and the first layer, and back
  // What nobody transposes back stays as it is.
  GraphBuilder once;
  const int y = once.input({5, 4, 6}), z = once.add("back", Transpose{{1, 2, 0}}, {once.input({6, 5, 4})});
  unchanged(sink_transposes, once.finish({once.add("relu", Elementwise{}, {once.add("sum", Combine{}, {y, z})})}));
}
