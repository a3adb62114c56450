// Functions behind operators that move values: which go before these, and which stay.
#include "test/network/pass_checks.h"

using namespace burin;
using namespace burin_test;

namespace {

// A convolution whose 8 channels become two of 2x2 blocks.
int depth_to_space(GraphBuilder& graph, int x, bool blocks_first) {
  x = graph.convolution(conv("conv", 2, 8), {x});
  if (blocks_first) {
    x = graph.add("split", Reshape{{2, 2, 2, 3, 4}}, {x});
    x = graph.add("turned", Transpose{{2, 3, 0, 4, 1}}, {x});
  } else {
    x = graph.add("split", Reshape{{2, 2, 2, 3, 4}}, {x});
    x = graph.add("turned", Transpose{{0, 3, 1, 4, 2}}, {x});
  }
  return graph.add("space", Reshape{{2, 6, 8}}, {x});
}

const ChannelAffine kTwo = {{2, -1}, {0.5F, 10}};

}  // namespace

TEST_CASE("lift_functions: what follows a transposed convolution becomes part of its phases") {
  GraphBuilder graph;
  int x = depth_to_space(graph, graph.input({2, 3, 4}), false);
  x = graph.add("relu", Elementwise{}, {graph.add("bn", kTwo, {x})});
  const Network network = graph.finish({x});
  const Network lifted = after(lift_functions, network, 6);
  CHECK(kinds(lifted) == "convolution channel_affine elementwise reshape transpose reshape");
  CHECK(std::get<ChannelAffine>(lifted.operators[1].kind).scale == std::vector<float>{2, 2, 2, 2, -1, -1, -1, -1});
  const Network simple = simplify(network);
  check_same(network, simple);
  CHECK(kinds(simple) == "convolution reshape transpose reshape");
}

TEST_CASE("lift_functions: an affine stays where channels are mixed, a function does not") {
  GraphBuilder graph;
  const int x = depth_to_space(graph, graph.input({2, 3, 4}), true);
  const Network network = graph.finish({graph.add("bn", kTwo, {x})});
  CHECK(kinds(after(lift_functions, network, 1)) == "convolution reshape transpose channel_affine reshape");
  GraphBuilder other;
  const int y = depth_to_space(other, other.input({2, 3, 4}), true);
  CHECK(kinds(after(lift_functions, other.finish({other.add("relu", Elementwise{}, {y})}), 3)) ==
        "convolution elementwise reshape transpose reshape");
}

TEST_CASE("lift_functions: not over what others read, nor over a pick of less than half, nor to no layer") {
  GraphBuilder graph;
  const int x = graph.input({2, 3, 4});
  const int made = graph.convolution(conv("conv", 2, 2), {x});
  const int turned = graph.add("turned", Transpose{{0, 2, 1}}, {made});
  const int few = graph.add("few", Pick{{{0, 1, 2}, {0, 1, 1}, {0, 1, 3}}}, {turned});
  const int a = graph.add("a", Elementwise{}, {turned}), b = graph.add("b", Elementwise{}, {few});
  const int c = graph.add("c", Elementwise{}, {graph.add("input_turned", Transpose{{0, 2, 1}}, {x})});
  unchanged(lift_functions, graph.finish({a, b, c}));
}

TEST_CASE("lift_functions: over a pick of most, but no affine over one of channels") {
  GraphBuilder graph;
  const int x = graph.convolution(conv("conv", 2, 3), {graph.input({2, 3, 4})});
  const int most = graph.add("most", Pick{{{2, -2, 2}, {0, 1, 3}, {0, 1, 3}}}, {x});
  const int relu = graph.add("relu", Elementwise{}, {graph.add("affine", kTwo, {most})});
  CHECK(kinds(after(lift_functions, graph.finish({relu}), 0)) == "convolution pick channel_affine elementwise");
  GraphBuilder other;
  const int y = other.convolution(conv("conv", 2, 3), {other.input({2, 3, 4})});
  const int part = other.add("most", Pick{{{2, -2, 2}, {0, 1, 3}, {0, 1, 3}}}, {y});
  CHECK(kinds(after(lift_functions, other.finish({other.add("relu", Elementwise{}, {part})}), 1)) ==
        "convolution elementwise pick");
}

TEST_CASE("lift_functions: the sum of two tensors of one row is that of images of one row") {
  GraphBuilder graph;
  const int x = graph.input({2, 1, 5});
  const int a = graph.add("a_flat", Reshape{{2, 5}}, {graph.convolution(conv("a", 2, 2), {x})});
  const int b = graph.add("b_flat", Reshape{{2, 5}}, {graph.convolution(conv("b", 2, 2), {x})});
  const int sum = graph.add("relu", Elementwise{}, {graph.add("sum", Combine{}, {a, b})});
  const Network network = graph.finish({sum});
  const Network simple =
      simplify(network, {}, {.stays_apart = {}, .together = [](const auto&, const auto&) { return false; }});
  check_same(network, simple);
  CHECK(kinds(simple) == "convolution convolution reshape");
}
