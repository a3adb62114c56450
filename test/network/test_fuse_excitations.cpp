// Squeeze-and-excitation: the mean, two fully connected layers and the product become two operators.
#include "test/network/pass_checks.h"

using namespace burin;
using namespace burin_test;

namespace {

Rewritten fuse_all(Network network) { return fuse_excitations(std::move(network), {}); }

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

TEST_CASE("fuse_excitations: convolutions of one pixel") {
  Block block;
  const Network result = after(fuse_all, block.graph.finish({block.gated}), 1);
  CHECK(kinds(result) == "squeeze excite");
  CHECK(result.operators[0].name == "mean+se.reduce");
  CHECK(result.operators[1].name == "se.expand+gated");
  CHECK(result.layers.empty());
}

TEST_CASE("fuse_excitations: fully connected layers with changes of shape, and the mean as a pool") {
  GraphBuilder graph;
  const int x = graph.input({4, 3, 5});
  const Pool whole{.kind = PoolKind::average, .kernel_h = 3, .kernel_w = 5};
  const int flat = graph.add("flat", Reshape{{4}}, {graph.add("mean", whole, {x})});
  const int squeezed = graph.add("fc1", linear(4, 2), {flat});
  const int expanded = graph.add("fc2", linear(2, 4), {squeezed});
  const int gate = graph.add("image", Reshape{{4, 1, 1}}, {expanded});
  const int gated = graph.add("gated", Combine{Combination::multiply}, {x, gate});
  CHECK(kinds(after(fuse_all, graph.finish({gated}), 1)) == "squeeze excite");
}

TEST_CASE("fuse_excitations: parts are of several channels and pixels") {
  GraphBuilder graph;
  const int x = graph.input({100, 60, 50});
  const int mean = graph.add("mean", GlobalAveragePool{}, {x});
  const int gate = graph.convolution(conv("b", 2, 100), {graph.convolution(conv("a", 100, 2), {mean})});
  const Network network = graph.finish({graph.add("gated", Combine{Combination::multiply}, {x, gate})});
  const Network result = after(fuse_all, network, 1);
  const Squeeze& squeeze = std::get<Squeeze>(result.operators[0].kind);
  CHECK(squeeze.part_channels == 8);
  CHECK(squeeze.part_pixels == 1000);
  CHECK(result.tensors[static_cast<std::size_t>(result.operators[0].output)].shape == std::vector<std::int64_t>{39, 2});
}

TEST_CASE("fuse_excitations: what somebody else reads stays, and so does what is no gate") {
  {
    Block block;
    CHECK(kinds(after(fuse_all, block.graph.finish({block.gated, block.squeezed}), 0)).starts_with("global"));
  }
  {
    Block block;
    const int other = block.graph.add("other", Elementwise{ElementFunction::relu}, {block.mean});
    after(fuse_all, block.graph.finish({block.gated, other}), 0);
  }
  {
    GraphBuilder graph;  // a classifier: its output is no image
    const int x = graph.input({4, 3, 5});
    const int flat = graph.add("flat", Reshape{{4}}, {graph.add("mean", GlobalAveragePool{}, {x})});
    const int y = graph.add("fc2", linear(2, 3), {graph.add("fc1", linear(4, 2), {flat})});
    after(fuse_all, graph.finish({y}), 0);
  }
  {
    GraphBuilder graph;  // another image is multiplied
    const int x = graph.input({4, 3, 5}), mean = graph.add("mean", GlobalAveragePool{}, {x});
    const int gate = graph.convolution(conv("b", 2, 4), {graph.convolution(conv("a", 4, 2), {mean})});
    const int other = graph.add("other", Elementwise{ElementFunction::relu}, {x});
    after(fuse_all, graph.finish({graph.add("gated", Combine{Combination::multiply}, {other, gate})}), 0);
  }
  {
    Block block;
    Network network = block.graph.finish({block.gated});
    std::get<Combine>(network.operators.back().kind).combination = Combination::add;
    after(fuse_all, network, 0);
    std::get<Combine>(network.operators.back().kind) = {Combination::multiply, Elementwise{ElementFunction::relu}};
    after(fuse_all, network, 0);
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
    after(fuse_all, graph.finish({graph.convolution(conv("b", 4, 4, adding), {a, a})}), 0);
  }
}

TEST_CASE("fuse_excitations: it is asked, with all that the operator is made of") {
  for (const bool allowed : {false, true}) {
    Block block;
    const Network network = block.graph.finish({block.gated});
    std::string asked;
    const Rewritten result = fuse_excitations(network, [&](const Network&, const Excitation& made) {
      for (const Operator* part : made.parts) asked += part->name + " ";
      CHECK(made.squeeze.name == "mean+se.reduce");
      CHECK(made.excite.name == "se.expand+gated");
      return allowed;
    });
    CHECK(asked == "mean se.reduce se.expand gated ");
    CHECK(result.changes == (allowed ? 1 : 0));
  }
}

TEST_CASE("fuse_excitations: a name that is taken keeps the parts apart") {
  for (const char* name : {"mean+se.reduce", "se.expand+gated"}) {
    Block block;
    const int other = block.graph.add(name, Elementwise{ElementFunction::relu}, {block.x});
    after(fuse_all, block.graph.finish({block.gated, other}), 0);
  }
}
