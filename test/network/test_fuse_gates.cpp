// Squeeze-and-excitation: the mean and two fully connected layers become one operator.
#include "test/network/pass_checks.h"

using namespace burin;
using namespace burin_test;

namespace {

Rewritten fuse_all_gates(Network network) { return fuse_gates(std::move(network), {}); }

ConvOptions with(Activation activation, std::vector<float> bias = {}) {
  ConvOptions options;
  options.bias = std::move(bias);
  options.activation = activation;
  return options;
}

Linear linear(int in, int out) {
  Linear op{in, out, {}, {}};
  for (int i = 0; i < in * out; ++i) op.weights.push_back(0.25F * static_cast<float>(i % 5) - 0.5F);
  return op;
}

// The block, whose parts are convolutions.
struct Block {
  GraphBuilder graph;
  int x = graph.input({4, 3, 5});
  int mean = graph.add("mean", GlobalAveragePool{}, {x});
  int squeezed = graph.convolution(conv("se.reduce", 4, 2, with(Activation::relu, {0.5F, -1})), {mean});
  int gate = graph.convolution(conv("se.expand", 2, 4, with(Activation::sigmoid)), {squeezed});
  int gated = graph.add("gated", Combine{Combination::multiply}, {x, gate});
};

}  // namespace

TEST_CASE("fuse_gates: convolutions of one pixel") {
  Block block;
  const Network result = after(fuse_all_gates, block.graph.finish({block.gated}), 1);
  CHECK(kinds(result) == "gate combine");
  CHECK(result.operators[0].name == "se.reduce+expand");
  CHECK(result.layers.empty());
}

TEST_CASE("fuse_gates: fully connected layers with changes of shape, and the mean as a pool") {
  GraphBuilder graph;
  const int x = graph.input({4, 3, 5});
  const Pool whole{.kind = PoolKind::average, .kernel_h = 3, .kernel_w = 5};
  const int flat = graph.add("flat", Reshape{{4}}, {graph.add("mean", whole, {x})});
  const int squeezed = graph.add("fc1", linear(4, 2), {flat});
  const int expanded = graph.add("fc2", linear(2, 6), {squeezed});
  const int gate = graph.add("image", Reshape{{6, 1, 1}}, {expanded});
  CHECK(kinds(after(fuse_all_gates, graph.finish({gate}), 1)) == "gate");
}

TEST_CASE("fuse_gates: what somebody else reads stays, and so does what is no gate") {
  {
    Block block;
    CHECK(kinds(after(fuse_all_gates, block.graph.finish({block.gated, block.squeezed}), 0)).starts_with("global"));
  }
  {
    Block block;
    const int other = block.graph.add("other", Elementwise{ElementFunction::relu}, {block.mean});
    after(fuse_all_gates, block.graph.finish({block.gated, other}), 0);
  }
  {
    GraphBuilder graph;  // a classifier: its output is no image
    const int x = graph.input({4, 3, 5});
    const int flat = graph.add("flat", Reshape{{4}}, {graph.add("mean", GlobalAveragePool{}, {x})});
    const int y = graph.add("fc2", linear(2, 3), {graph.add("fc1", linear(4, 2), {flat})});
    after(fuse_all_gates, graph.finish({y}), 0);
  }
  {
    GraphBuilder graph;  // a residual, groups, and a pool that is no mean
    const int x = graph.input({4, 3, 5});
    const int mean = graph.add("mean", GlobalAveragePool{}, {x});
    ConvOptions grouped;
    grouped.groups = 2;
    const int a = graph.convolution(conv("a", 4, 4, grouped), {mean});
    ConvOptions adding;
    adding.residual = true;
    after(fuse_all_gates, graph.finish({graph.convolution(conv("b", 4, 4, adding), {a, a})}), 0);
  }
}

TEST_CASE("fuse_gates: it is asked, with all that the operator is made of") {
  for (const bool allowed : {false, true}) {
    Block block;
    const Network network = block.graph.finish({block.gated});
    std::string asked;
    const Rewritten result =
        fuse_gates(network, [&](const Network& of, const Operator& gate, const std::vector<const Operator*>& parts) {
          for (const Operator* part : parts) asked += part->name + " ";
          CHECK(of.tensors[static_cast<std::size_t>(gate.output)].name == "se.expand_out");
          return allowed;
        });
    CHECK(asked == "mean se.reduce se.expand ");
    CHECK(result.changes == (allowed ? 1 : 0));
  }
}

TEST_CASE("fuse_gates: a name that is taken keeps the parts apart") {
  Block block;
  const int other = block.graph.add("se.reduce+expand", Elementwise{ElementFunction::relu}, {block.x});
  after(fuse_all_gates, block.graph.finish({block.gated, other}), 0);
}
