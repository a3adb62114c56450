// Candidates that are really compiled: their code is that of the package.
#include "compiler/make_kernel.h"

#include <algorithm>

#include "compiler/assemble/assemble.h"
#include "compiler/choose/choose.h"
#include "compiler/compile.h"
#include "test/catch.h"
#include "test/ir/random_layers.h"
#include "test/skip.h"
#include "test/tune/fake_measurer.h"

using namespace burin;
using burin_test::baked_alone;

namespace {

Network small_network() {
  ConvShape shape;
  shape.in_channels = shape.out_channels = 8;
  shape.kernel_h = shape.kernel_w = 3;
  shape.pad = {1, 1, 1, 1};
  shape.in_h = shape.in_w = 10;
  Network network;
  network.source = "test.npz";
  network.layers = {burin_test::make_layer("conv", shape, 0.3)};
  separate_layers(network);
  return network;
}

bool can_assemble() { return find_assembler().kind != AssemblerInfo::Kind::none; }

}  // namespace

TEST_CASE("candidate: a package of one kernel with the device's machine code") {
  if (!can_assemble()) BURIN_SKIP("no assembler");
  const Network network = small_network();
  CompileOptions options = baked_alone();
  options.archs = {"sm_90", "sm_80"};
  const TuningTasks tuning = tuning_tasks(network, options);
  const std::vector<Task>& tasks = tuning.tasks;
  const Candidate candidate = choose(tasks.at(0), options).candidate;
  const Package package = compile_candidate(tasks.at(0), candidate, options, "sm_90");
  CHECK(verify(package).empty());
  REQUIRE(package.manifest.kernels.size() == 1);
  const std::vector<KernelBinary>& binaries = package.manifest.kernels[0].binaries;
  REQUIRE(std::ranges::count(binaries, BinaryKind::cubin, &KernelBinary::kind) == 1);
  const KernelBinary& binary = *std::ranges::find(binaries, BinaryKind::cubin, &KernelBinary::kind);
  CHECK(binary.arch == "sm_90");
  CHECK(binary.registers > 0);

  // What was measured is what is packed.
  const Package compiled = compile_network(network, options, {}).package;
  CHECK((compiled.files.at(binary.path) == package.files.at(binary.path)));
}

TEST_CASE("candidate: tuning with real code, and the package keeps plan and evidence") {
  if (!can_assemble()) BURIN_SKIP("no assembler");
  const Network network = small_network();
  burin_test::FakeMeasurer measurer(network);
  measurer.baked_us = [](const BakedPlan& plan) { return 100.0 / plan.threads; };
  TuneOptions tune_options;
  tune_options.plans = 2;
  CompileOptions options = baked_alone();
  const TuningTasks tuning = tuning_tasks(network, options);
  const std::vector<Task>& tasks = tuning.tasks;
  options.tuned = tune_tasks(tasks, baked_alone(), tune_options,
                             [&](const Task& task, const Candidate& candidate) {
                               return compile_candidate(task, candidate, options, "sm_90");
                             },
                             measurer, {})
                      .kernels;
  const TunedKernel tuned = options.tuned.at(0);
  const Package package = compile_network(network, options, {}).package;
  CHECK(verify(package).empty());
  REQUIRE(package.manifest.kernels.size() == 1);
  const Kernel& kernel = package.manifest.kernels[0];
  CHECK(kernel.plan == tuned.candidate.plan);
  CHECK(kernel.symbol == tuned.candidate.symbol);
  CHECK(kernel.tuning == tuned.evidence);
  CHECK(parse_manifest(print(package.manifest)) == package.manifest);

  // Models have no say where there are measurements; a person has.
  options.kernels = {};
  options.tuned.front().candidate.estimate.us = 1e6;
  const Kernel chosen = compile_network(network, options, {}).package.manifest.kernels.at(0);
  CHECK(chosen.plan == tuned.candidate.plan);
  CHECK(chosen.tuning.has_value());
  options.kernels.all = "conv_dense";
  CHECK_FALSE(compile_network(network, options, {}).package.manifest.kernels.at(0).tuning);

  options = baked_alone();
  options.tuned = {tuned};
  options.tuned.front().batch = 2;  // of no kernel
  CHECK_FALSE(compile_network(network, options, {}).package.manifest.kernels.at(0).tuning);
}
