// Layers that the models join are left apart where the whole network is faster so.
#include "compiler/tune/time_siblings.h"

#include "compiler/program_graphs.h"
#include "ir/error.h"
#include "test/catch.h"
#include "test/ir/random_layers.h"
#include "test/ir/small_network.h"
#include "test/thrown.h"

using namespace burin;
using namespace burin_test;

namespace {

// The end of a fire module: one launch of the two is estimated to be faster than two.
Network two_siblings() {
  ConvShape shape;
  shape.in_channels = 16, shape.out_channels = 8;
  shape.in_h = shape.in_w = 8;
  ConvShape wide = shape;
  wide.kernel_h = wide.kernel_w = 3;
  wide.pad = {1, 1, 1, 1};
  GraphBuilder graph;
  const int input = graph.input({16, 8, 8}, "x");
  const int left = graph.convolution(make_layer("left", shape, 0.3), {input});
  const int right = graph.convolution(make_layer("right", wide, 0.3), {input});
  Network network = graph.finish({graph.add("both", Concat{}, {left, right})});
  network.source = "fire.onnx";
  return network;
}

CompileOptions two_sizes() {
  CompileOptions options;
  options.batches = {1, 2};
  options.jobs = 2;
  return options;
}

std::size_t operators_of(const CompileOptions& options, int batch) {
  return prepare_graphs(two_siblings(), options).of(batch).operators.size();
}

}  // namespace

TEST_CASE("siblings: they stay apart for the batch sizes for which the network is faster so") {
  CompileOptions options = two_sizes();
  const std::size_t joined = operators_of(options, 1);
  std::vector<int> timed;
  const auto time = [&](std::span<const TimedProgram> programs, int) {
    REQUIRE(programs.size() == 2);
    CHECK(programs[0].program->steps.size() < programs[1].program->steps.size());
    CHECK(verify(*programs[0].package).empty());
    const int batch = programs[0].program->batch;
    CHECK(programs[1].program->batch == batch);
    timed.push_back(batch);
    return std::vector<double>{10.0, batch == 1 ? 9.95 : 8.0};  // half a percent is not worth a change
  };
  const TimedSiblings siblings = time_siblings(two_siblings(), options, {}, time);
  CHECK(timed == std::vector<int>{1, 2});
  CHECK(siblings.apart == std::set<int>{2});
  REQUIRE(siblings.notes.size() == 2);
  CHECK_THAT(siblings.notes[0], Contains("batch 1: ") && Contains("10.0 us, and 9.9") && !Contains("packed"));
  CHECK_THAT(siblings.notes[1], Contains("8.0 with all of them apart, as they are packed"));
  options.siblings_apart = siblings.apart;
  CHECK(operators_of(options, 1) == joined);
  CHECK(operators_of(options, 2) > joined);
  options.batches = {2};
  CHECK(operators_of(options, 2) > joined);
}

TEST_CASE("siblings: where nothing can be joined, or asked, nothing is timed") {
  const auto never = [](std::span<const TimedProgram>, int) -> std::vector<double> {
    throw std::logic_error("there is nothing to compare");
  };
  CompileOptions options = two_sizes();
  options.siblings = false;
  CHECK(time_siblings(two_siblings(), options, {}, never).notes.empty());
  options = two_sizes();
  options.asked_batches = {1, 2};
  CHECK(time_siblings(two_siblings(), options, {}, never).notes.empty());
  GraphBuilder graph;
  ConvShape shape;
  shape.in_channels = 16, shape.out_channels = 8;
  shape.in_h = shape.in_w = 8;
  const int output = graph.convolution(make_layer("alone", shape, 0.3), {graph.input({16, 8, 8}, "x")});
  const Network one = graph.finish({output});
  CHECK(time_siblings(one, two_sizes(), {}, never).notes.empty());
}

TEST_CASE("siblings: a network that cannot be timed stays as the models say") {
  const auto lost = [](std::span<const TimedProgram>, int) -> std::vector<double> {
    fail(ErrorKind::device, "cuMemAlloc: out of memory");
  };
  const TimedSiblings siblings = time_siblings(two_siblings(), two_sizes(), {}, lost);
  CHECK(siblings.apart.empty());
  REQUIRE(siblings.notes.size() == 2);
  CHECK_THAT(siblings.notes[0], Contains("was not timed") && Contains("out of memory"));
  const auto broken = [](std::span<const TimedProgram>, int) -> std::vector<double> {
    fail(ErrorKind::internal, "broken");
  };
  CHECK_THAT(BURIN_THROWN(internal, time_siblings(two_siblings(), two_sizes(), {}, broken)).text, Contains("broken"));
}
