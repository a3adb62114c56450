// A network with what was measured to be the fastest, or with the models' choice, whichever is faster as a whole.
#include <algorithm>
#include <map>

#include "compiler/choose/choose.h"
#include "compiler/tune/tuned_network.h"
#include "ir/error.h"
#include "test/catch.h"
#include "test/ir/random_layers.h"
#include "test/scratch_folder.h"
#include "test/thrown.h"
#include "test/tune/fake_measurer.h"

using namespace burin;
using burin_test::Contains;
using burin_test::FakeMeasurer;
using burin_test::ScratchFolder;

namespace {

Network network_of_one() {
  Network network;
  network.source = "one.onnx";
  network.tensors = {{"x", {16, 10, 10}}, {"y", {16, 10, 10}}};
  ConvShape shape;
  shape.in_channels = shape.out_channels = 16;
  shape.in_h = shape.in_w = 10;
  network.layers.push_back(burin_test::make_layer("conv", shape, 0.2));
  network.operators.push_back({"conv", Convolution{0}, {0}, 1});
  network.inputs = {0};
  network.outputs = {1};
  return network;
}

// Options whose tuned kernels are not those that the models choose, for either batch size.
CompileOptions tuned_options(const Network& network) {
  CompileOptions options = burin_test::baked_alone();
  options.batches = {1, 2};
  options.jobs = 2;
  FakeMeasurer measurer(network);
  measurer.baked_us = [](const BakedPlan& plan) { return 1000.0 - plan.predicted_us; };
  const Network prepared = prepare_graph(network, std::nullopt, graph_choices(options));
  options.tuned =
      tune_tasks(tuning_tasks(prepared, options).tasks, options, {.plans = 3}, burin_test::fake_compile, measurer, {})
          .kernels;
  REQUIRE(options.tuned.size() == 2);
  for (const TunedKernel& kernel : options.tuned) REQUIRE(kernel.evidence.chosen != 0);
  return options;
}

// The kernel that the package's program of a batch size launches.
const Kernel& kernel_of(const Package& package, int batch) {
  const auto program = std::ranges::find(package.manifest.programs, batch, &Program::batch);
  REQUIRE(program != package.manifest.programs.end());
  const auto kernel = std::ranges::find(package.manifest.kernels, program->steps.at(0).kernel, &Kernel::symbol);
  REQUIRE(kernel != package.manifest.kernels.end());
  return *kernel;
}

bool is_tuned(const Package& package, int batch) { return kernel_of(package, batch).tuning.value().chosen != 0; }

}  // namespace

TEST_CASE("tuned network: each batch size has the faster of what was measured and what the models choose") {
  const Network network = network_of_one();
  const CompileOptions options = tuned_options(network);
  for (const auto& [slow_one, slow_two] : {std::pair{false, false}, {true, false}, {false, true}, {true, true}}) {
    CAPTURE(slow_one, slow_two);
    std::vector<int> asked;
    const auto time = [&](std::span<const Package* const> packages, int batch) {
      asked.push_back(batch);
      REQUIRE(packages.size() == 2);
      CHECK(is_tuned(*packages[0], batch));
      CHECK_FALSE(is_tuned(*packages[1], batch));
      const bool slow = batch == 1 ? slow_one : slow_two;
      return std::vector<double>{slow ? 12.0 : 10.0, 11.0};
    };
    const CompileResult result = compile_tuned(network, options, {}, time);
    CHECK(verify(result.package).empty());
    CHECK(asked == std::vector<int>{1, 2});
    CHECK(is_tuned(result.package, 1) == !slow_one);
    CHECK(is_tuned(result.package, 2) == !slow_two);
    REQUIRE(result.notes.size() >= 2);
    const std::string& note = result.notes.at(result.notes.size() - 2);
    CHECK_THAT(note,
               Contains("batch 1: the network takes ") && Contains(" and 11.0 with those that the models choose"));
    CHECK((note.find("which are packed") != std::string::npos) == slow_one);
  }
}

TEST_CASE("tuned network: one that cannot be timed has what was measured, and says why") {
  const Network network = network_of_one();
  const CompileOptions options = tuned_options(network);
  const auto lost = [](std::span<const Package* const>, int batch) -> std::vector<double> {
    if (batch == 1) return {12, 11};
    fail(ErrorKind::device, "cuMemAlloc: out of memory");
  };
  const CompileResult result = compile_tuned(network, options, {}, lost);
  CHECK(is_tuned(result.package, 1));
  CHECK(is_tuned(result.package, 2));
  REQUIRE(!result.notes.empty());
  CHECK_THAT(result.notes.back(), Contains("was not timed") && Contains("out of memory"));
  const auto broken = [](std::span<const Package* const>, int) -> std::vector<double> {
    fail(ErrorKind::internal, "broken");
  };
  CHECK_THAT(BURIN_THROWN(internal, compile_tuned(network, options, {}, broken)).text, Contains("broken"));
}

TEST_CASE("tuned network: stages that are dumped are those of what is packed") {
  const Network network = network_of_one();
  CompileOptions options = tuned_options(network);
  for (const bool slow : {false, true}) {
    const ScratchFolder folder;
    options.dump_dir = folder / "stages";
    const auto time = [&](std::span<const Package* const>, int) { return std::vector<double>{slow ? 12.0 : 10.0, 11}; };
    const CompileResult result = compile_tuned(network, options, {}, time);
    CHECK(is_tuned(result.package, 2) == !slow);
    CHECK(burin_test::read_file(folder / "stages/conv/b2/30-plan.txt") == kernel_of(result.package, 2).plan);
  }
}

TEST_CASE("tuned network: where the models choose the same nothing is timed") {
  const Network network = network_of_one();
  CompileOptions options = tuned_options(network);
  options.tuned = as_models_choose(options.tuned, {1, 2});
  const auto never = [](std::span<const Package* const>, int) -> std::vector<double> {
    throw std::logic_error("there is nothing to compare");
  };
  const CompileResult result = compile_tuned(network, options, {}, never);
  CHECK_FALSE(is_tuned(result.package, 1));
}
