// The graphs of a network's batch sizes: which share one, and which have their own.
#include "compiler/program_graphs.h"

#include "compiler/compile.h"
#include "ir/error.h"
#include "test/catch.h"
#include "test/ir/small_network.h"
#include "test/thrown.h"

using namespace burin;
using namespace burin_test;

namespace {

ConvLayer layer_of(const std::string& name, int channels, int groups, int extent, int image = 14) {
  ConvLayer layer;
  layer.name = name;
  ConvShape& shape = layer.shape;
  shape.in_channels = shape.out_channels = channels;
  shape.groups = groups;
  shape.kernel_h = shape.kernel_w = extent;
  shape.pad = {extent / 2, extent / 2, extent / 2, extent / 2};
  shape.in_h = shape.in_w = image;
  layer.weights.assign(static_cast<std::size_t>(shape.weight_elements()), 0.5F);
  return layer;
}

// A convolution and a depthwise one behind it.
Network pair() {
  GraphBuilder graph;
  const int wide = graph.convolution(layer_of("pw", 64, 1, 1), {graph.input({64, 14, 14}, "x")});
  return graph.finish({graph.convolution(layer_of("dw", 64, 64, 3), {wide})});
}

}  // namespace

TEST_CASE("program graphs: those that are the same are one") {
  ProgramGraphs graphs;
  graphs.add(1, pair());
  graphs.add(8, pair());
  Network other = pair();
  other.operators.front().name = "renamed";
  graphs.add(32, std::move(other));
  CHECK(&graphs.of(1) == &graphs.of(8));
  CHECK(&graphs.of(1) != &graphs.of(32));
  const std::vector<ProgramGraphs::Shared> shared = graphs.shared_by({8, 32, 1});
  REQUIRE(shared.size() == 2);
  CHECK(shared[0].graph == &graphs.of(1));
  CHECK(shared[0].batches == std::vector<int>{8, 1});
  CHECK(shared[1].batches == std::vector<int>{32});
  CHECK(&ProgramGraphs(graphs).of(32) == &graphs.of(32));  // a copy has the same graphs
  CHECK(BURIN_THROWN(internal, graphs.of(2)).has("no graph for a batch of 2"));
}

TEST_CASE("program graphs: one for all sizes") {
  ProgramGraphs graphs(pair());
  CHECK(&graphs.of(1) == &graphs.any());
  CHECK(&graphs.of(77) == &graphs.any());
  REQUIRE(graphs.shared_by({1, 77}).size() == 1);
  CHECK(BURIN_THROWN(internal, graphs.add(1, pair())).has("beside the one for all"));
}

TEST_CASE("program graphs: sizes of a list have their own, those of a range one") {
  CompileOptions options;
  options.archs = {"sm_90"};
  options.precisions = {Precision::fp16};
  options.batches = {1, 8};
  const ProgramGraphs listed = prepare_graphs(pair(), options);
  CHECK(listed.of(1).operators.size() == 1);
  CHECK(listed.of(8).operators.size() == 2);
  options.asked_batches = {1, 8};  // what a range was resolved for
  const ProgramGraphs range = prepare_graphs(pair(), options);
  CHECK(&range.of(1) == &range.of(8));
  CHECK(range.of(1).operators.size() == 2);
}
