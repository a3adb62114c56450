// A network in which kernels are exchanged for those that make the whole of it faster.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <set>

#include "compiler/assemble/assemble.h"
#include "compiler/choose/choose.h"
#include "compiler/kernel_cache.h"
#include "compiler/make_kernel.h"
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

Network network_of_two() {
  Network network;
  network.source = "two.onnx";
  network.tensors = {{"x", {16, 10, 10}}, {"y", {16, 10, 10}}, {"z", {16, 10, 10}}};
  ConvShape shape;
  shape.in_channels = shape.out_channels = 16;
  shape.in_h = shape.in_w = 10;
  for (const int layer : {0, 1}) {
    const std::string name = fmt::format("conv{}", layer);
    network.layers.push_back(burin_test::make_layer(name, shape, 0.2));
    network.operators.push_back({name, Convolution{layer}, {layer}, layer + 1});
  }
  network.inputs = {0};
  network.outputs = {2};
  return network;
}

// Options whose tuned kernels have rivals, for either batch size; the models' choice is one of them.
CompileOptions tuned_options(const Network& network) {
  CompileOptions options = burin_test::baked_alone();
  options.batches = {1, 2};
  options.jobs = 2;
  const Network prepared = prepare_graph(network, std::nullopt, graph_choices(options));
  FakeMeasurer measurer(prepared);
  // All take nearly the same, those that are predicted to take longest the least.
  measurer.baked_us = [](const BakedPlan& plan) { return 100.0 - plan.predicted_us / 1000; };
  options.tuned =
      tune_tasks(tuning_tasks(prepared, options).tasks, options, {.plans = 3}, burin_test::fake_compile, measurer, {})
          .kernels;
  REQUIRE(options.tuned.size() == 4);
  for (const TunedKernel& kernel : options.tuned) {
    REQUIRE(kernel.evidence.chosen != 0);
    REQUIRE(kernel.rivals.size() >= 2);
  }
  return options;
}

const Kernel& kernel_of(const Package& package, const Step& step) {
  const auto kernel = std::ranges::find(package.manifest.kernels, step.kernel, &Kernel::symbol);
  REQUIRE(kernel != package.manifest.kernels.end());
  return *kernel;
}

const Program& program_of_batch(const Package& package, int batch) {
  const auto program = std::ranges::find(package.manifest.programs, batch, &Program::batch);
  REQUIRE(program != package.manifest.programs.end());
  return *program;
}

// The plans of a program's steps.
std::vector<std::string> plans_of(const Package& package, const Program& program) {
  std::vector<std::string> plans;
  for (const Step& step : program.steps) plans.push_back(kernel_of(package, step).plan);
  return plans;
}

// The plan of a candidate of the evidence.
std::string plan_at(const TunedKernel& kernel, int index) {
  if (index == kernel.evidence.chosen) return kernel.candidate.plan;
  const auto rival = std::ranges::find(kernel.rivals, index, &Rival::index);
  REQUIRE(rival != kernel.rivals.end());
  return rival->candidate.plan;
}

const TunedKernel& tuned_of(const CompileOptions& options, const std::string& layer, int batch) {
  const auto found = std::ranges::find_if(
      options.tuned, [&](const TunedKernel& kernel) { return kernel.layer == layer && kernel.batch == batch; });
  REQUIRE(found != options.tuned.end());
  return *found;
}

// A GPU on which a network takes as long as its kernels say, which are told apart by their plans.
struct FakeTimer {
  std::function<double(const std::vector<std::string>& plans, int batch)> us;
  int calls = 0;

  std::vector<double> operator()(std::span<const TimedProgram> programs, int turns) {
    CHECK(turns > 0);
    ++calls;
    std::vector<double> times;
    for (const auto& [package, program] : programs) {
      CHECK(verify(*program).empty());
      times.push_back(us(plans_of(*package, *program), program->batch));
    }
    return times;
  }
};

CompileResult compile(const Network& network, const CompileOptions& options, FakeTimer& timer,
                      const TuneOptions& tune_options = {}) {
  return compile_tuned(network, options, tune_options, {}, std::ref(timer));
}

}  // namespace

TEST_CASE("tuned network: what was compiled to be measured is not compiled again") {
  const Network network = network_of_two();
  const ScratchFolder folder;
  const KernelCache cache(folder / "cache", std::int64_t{1} << 30);
  CompileOptions options = burin_test::baked_alone();
  options.jobs = 2;
  options.cache = &cache;
  const Network prepared = prepare_graph(network, std::nullopt, graph_choices(options));
  FakeMeasurer measurer(prepared);
  measurer.baked_us = [](const BakedPlan& plan) { return 100.0 - plan.predicted_us / 1000; };
  TuneOptions tuning{.plans = 3, .jobs = 2};
  const auto compile_it = [&](const Task& task, const Candidate& candidate) {
    return compile_candidate(task, candidate, options, "sm_90");
  };
  tuning.keep = [&](const Task& task, const Candidate& candidate, const Package& compiled) {
    keep_candidate(task, candidate, options, "sm_90", compiled);
  };
  options.tuned = tune_tasks(tuning_tasks(prepared, options).tasks, options, tuning, compile_it, measurer, {}).kernels;
  std::size_t wanted = 0;
  std::set<std::string> entries;
  for (const TunedKernel& kernel : options.tuned) {
    wanted += 1 + kernel.rivals.size();
    entries.insert(kernel.candidate.symbol);
    for (const Rival& rival : kernel.rivals) entries.insert(rival.candidate.symbol);
  }
  REQUIRE(wanted > entries.size());
  options.rivals = true;
  const CompileResult made = compile_network(network, options, {});
  const std::vector<Kernel>& kernels = made.package.manifest.kernels;
  CHECK(kernels.size() == wanted);
  CHECK(made.cached == static_cast<int>(wanted));
  CHECK(fmt::format("{}", fmt::join(verify(made.package), "\n")) == "");
  // Kernels of one layer have names of their own, and code that knows nothing of these.
  int renamed = 0;
  for (const Kernel& kernel : kernels) {
    CAPTURE(kernel.symbol);
    renamed += !kernel.entry.empty();
    const auto ptx = std::ranges::find(kernel.binaries, BinaryKind::ptx, &KernelBinary::kind);
    REQUIRE(ptx != kernel.binaries.end());
    CHECK(ptx->path == fmt::format("kernels/{}.ptx", kernel.symbol));
    CHECK_THAT(*made.package.files.at(ptx->path).content(), Contains(fmt::format(".entry {}(", kernel.entry_name())));
    CHECK(rebuild_ptx(made.package, kernel, ptx->arch) == *made.package.files.at(ptx->path).content());
  }
  CHECK(renamed == static_cast<int>(wanted - entries.size()));
  // Without them everything is called as ever.
  options.rivals = false;
  const CompileResult alone = compile_network(network, options, {});
  CHECK(alone.cached == static_cast<int>(options.tuned.size()));
  for (const Kernel& kernel : alone.package.manifest.kernels) CHECK(kernel.entry.empty());
}

TEST_CASE("tuned network: a kernel that is faster in the network takes the place of the fastest by itself") {
  const Network network = network_of_two();
  const CompileOptions options = tuned_options(network);
  // Of one layer and one batch size another than the fastest and the models' choice is what a network runs fastest.
  const TunedKernel& of_one = tuned_of(options, "conv1", 2);
  const auto rival = std::ranges::find_if(of_one.rivals, [](const Rival& one) { return one.index != 0; });
  REQUIRE(rival != of_one.rivals.end());
  const std::string wanted = rival->candidate.plan;
  FakeTimer timer;
  timer.us = [&](const std::vector<std::string>& plans, int batch) {
    double us = 10;
    for (const std::string& layer : {"conv0", "conv1"}) {
      const TunedKernel& tuned = tuned_of(options, layer, batch);
      const std::string& plan = plans.at(layer == "conv0" ? 0 : 1);
      const bool is_best = layer == "conv1" && batch == 2 ? plan == wanted : plan == tuned.candidate.plan;
      if (!is_best) us += 1;
    }
    return us;
  };
  const CompileResult result = compile(network, options, timer);
  CHECK(verify(result.package).empty());
  for (const int batch : {1, 2}) {
    const Program& program = program_of_batch(result.package, batch);
    CHECK(plans_of(result.package, program)[0] == tuned_of(options, "conv0", batch).candidate.plan);
    CHECK(plans_of(result.package, program)[1] ==
          (batch == 2 ? wanted : tuned_of(options, "conv1", batch).candidate.plan));
  }
  // The evidence has what the network took, and what was chosen by that.
  const TuningRecord& evidence =
      kernel_of(result.package, program_of_batch(result.package, 2).steps.at(1)).tuning.value();
  CHECK(evidence.chosen == rival->index);
  CHECK(evidence.candidates.at(static_cast<std::size_t>(rival->index)).network_us == 10);
  CHECK(evidence.candidates.at(static_cast<std::size_t>(of_one.evidence.chosen)).network_us == 11);
  REQUIRE(result.notes.size() >= 2);
  CHECK_THAT(result.notes.at(result.notes.size() - 2),
             Contains("batch 1: the network takes 10.0 us; 10.0 with the kernels that are the fastest by themselves, "
                      "12.0 with those that the models choose") &&
                 Contains("tried for 2 steps, and 0 have one"));
  CHECK_THAT(result.notes.back(), Contains("batch 2: the network takes 10.0 us; 11.0 with") &&
                                      Contains("tried for 2 steps, and 1 have one"));
  // Nothing is packed beside what is launched.
  CHECK(result.package.manifest.kernels.size() == 4);
}

TEST_CASE("tuned network: where it is faster as a whole with the models' choice, it has that") {
  const Network network = network_of_two();
  const CompileOptions options = tuned_options(network);
  for (const auto& [slow_one, slow_two] : {std::pair{false, false}, {true, false}, {false, true}, {true, true}}) {
    CAPTURE(slow_one, slow_two);
    FakeTimer timer;
    const auto is_models = [&](const std::vector<std::string>& plans, int batch) {
      return plans[0] == plan_at(tuned_of(options, "conv0", batch), 0) &&
             plans[1] == plan_at(tuned_of(options, "conv1", batch), 0);
    };
    const auto is_fastest = [&](const std::vector<std::string>& plans, int batch) {
      return plans[0] == tuned_of(options, "conv0", batch).candidate.plan &&
             plans[1] == tuned_of(options, "conv1", batch).candidate.plan;
    };
    // Every mixture is slower than both.
    timer.us = [&](const std::vector<std::string>& plans, int batch) {
      if (is_models(plans, batch)) return 11.0;
      if (is_fastest(plans, batch)) return (batch == 1 ? slow_one : slow_two) ? 12.0 : 10.0;
      return 20.0;
    };
    const CompileResult result = compile(network, options, timer);
    CHECK(is_models(plans_of(result.package, program_of_batch(result.package, 1)), 1) == slow_one);
    CHECK(is_models(plans_of(result.package, program_of_batch(result.package, 2)), 2) == slow_two);
    CHECK_THAT(result.notes.back(), Contains(slow_two ? "takes 11.0 us; 12.0 with" : "takes 10.0 us; 10.0 with"));
  }
}

TEST_CASE("tuned network: what differs by less than the noise is not exchanged") {
  const Network network = network_of_two();
  const CompileOptions options = tuned_options(network);
  FakeTimer timer;
  timer.us = [&](const std::vector<std::string>& plans, int batch) {
    return plans[0] == tuned_of(options, "conv0", batch).candidate.plan ? 10.0 : 9.99;
  };
  const CompileResult result = compile(network, options, timer);
  CHECK_THAT(result.notes.back(), Contains("the network takes 10.0 us") && Contains("0 have one"));
  // One pass over the steps tells so.
  CHECK(timer.calls == 2 * (1 + 2 + 1));
}

TEST_CASE("tuned network: when the time is up, the rest stays as it is") {
  const Network network = network_of_two();
  const CompileOptions options = tuned_options(network);
  double now = 0;
  FakeTimer timer;
  timer.us = [&](const std::vector<std::string>&, int) {
    now += 1;
    return 10.0;
  };
  const CompileResult result = compile(network, options, timer, {.budget = TimeBudget(4, [&now] { return now; })});
  CHECK_THAT(result.notes.back(), Contains("tried for 0 steps until the time was up"));
}

TEST_CASE("tuned network: a batch size that cannot be timed has what is the fastest by itself, and says why") {
  const Network network = network_of_two();
  const CompileOptions options = tuned_options(network);
  FakeTimer timer;
  timer.us = [&](const std::vector<std::string>& plans, int batch) -> double {
    if (batch == 1) return plans[0] == plan_at(tuned_of(options, "conv0", 1), 0) ? 1 : 2;  // the models are right
    fail(ErrorKind::device, "cuMemAlloc: out of memory");
  };
  const CompileResult result = compile(network, options, timer);
  CHECK(plans_of(result.package, program_of_batch(result.package, 1))[0] == plan_at(tuned_of(options, "conv0", 1), 0));
  CHECK(plans_of(result.package, program_of_batch(result.package, 2))[0] ==
        tuned_of(options, "conv0", 2).candidate.plan);
  REQUIRE(result.notes.size() >= 2);
  CHECK_THAT(result.notes.at(result.notes.size() - 2), Contains("batch 1: the network takes 1.0 us; 2.0 with"));
  CHECK_THAT(result.notes.back(),
             Contains("batch 2: ") && Contains("was not timed as a whole") && Contains("out of memory"));
  timer.us = [](const std::vector<std::string>&, int) -> double { fail(ErrorKind::internal, "broken"); };
  CHECK_THAT(BURIN_THROWN(internal, compile(network, options, timer)).text, Contains("broken"));
}

TEST_CASE("tuned network: stages that are dumped are those of what is packed") {
  const Network network = network_of_two();
  CompileOptions options = tuned_options(network);
  const ScratchFolder folder;
  options.dump_dir = folder / "stages";
  const std::string wanted = tuned_of(options, "conv1", 2).rivals.front().candidate.plan;
  FakeTimer timer;
  timer.us = [&](const std::vector<std::string>& plans, int) { return plans[1] == wanted ? 9.0 : 10.0; };
  const CompileResult result = compile(network, options, timer);
  CHECK(plans_of(result.package, program_of_batch(result.package, 2))[1] == wanted);
  CHECK(burin_test::read_file(folder / "stages/conv1/b2/30-plan.txt") == wanted);
}

TEST_CASE("tuned network: without rivals, within a limit of memory, or with activity maps, nothing is timed") {
  const Network network = network_of_two();
  CompileOptions options = tuned_options(network);
  FakeTimer timer;
  timer.us = [](const std::vector<std::string>&, int) -> double { throw std::logic_error("nothing is to be timed"); };
  CompileOptions limited = options;
  limited.objective = Objective::memory;
  limited.memory_limit = std::int64_t{1} << 30;
  if (find_assembler().kind != AssemblerInfo::Kind::none) compile(network, limited, timer);
  CompileOptions with_maps = options;
  with_maps.skip_dead_tiles = true;
  compile(network, with_maps, timer);
  for (TunedKernel& kernel : options.tuned) kernel.rivals.clear();
  compile(network, options, timer);
  CHECK(timer.calls == 0);
}
