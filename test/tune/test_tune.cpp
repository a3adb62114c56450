#include "compiler/tune/tune.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <map>
#include <new>
#include <set>

#include "compiler/choose/choose.h"
#include "compiler/compile.h"
#include "compiler/kernel_cache.h"
#include "compiler/providers/conv_baked/plan/planner.h"
#include "ir/limits.h"
#include "ir/sparse_pattern.h"
#include "test/catch.h"
#include "test/ir/random_layers.h"
#include "test/ir/small_network.h"
#include "test/scratch_folder.h"
#include "test/thrown.h"
#include "test/tune/fake_measurer.h"

using namespace burin;
using burin_test::baked_alone;
using burin_test::fake_compile;
using burin_test::FakeMeasurer;
using burin_test::plan_of;
using burin_test::ScratchFolder;

namespace {

ConvLayer layer_of(const std::string& name, int kernel) {
  ConvShape shape;
  shape.in_channels = shape.out_channels = 32;
  shape.kernel_h = shape.kernel_w = kernel;
  shape.in_h = shape.in_w = 14;
  shape.pad = {kernel / 2, kernel / 2, kernel / 2, kernel / 2};
  shape.epilogue.bias = true;
  return burin_test::make_layer(name, shape, 0.2);
}

Network network_of(std::vector<ConvLayer> layers) {
  Network network;
  network.source = "test";
  network.layers = std::move(layers);
  separate_layers(network);
  return network;
}

Network one_layer() { return network_of({layer_of("conv", 3)}); }

// The candidates' plans are told apart by what --plan would take.
std::string text_of(const BakedPlan& plan) { return print(constraints_of(plan)); }

std::vector<TunedKernel> tune(const Network& network, FakeMeasurer& measurer, const TuneOptions& options = {},
                              const CandidateCompiler& compile = fake_compile,
                              const CompileOptions& compile_options = baked_alone()) {
  const Network prepared = prepare_graph(network, std::nullopt, graph_choices(compile_options));
  return tune_tasks(tuning_tasks(prepared, compile_options).tasks, compile_options, options, compile, measurer, {})
      .kernels;
}

std::vector<TunedKernel> tune(const Network& network, FakeMeasurer& measurer, const TuneOptions& options,
                              const CompileOptions& compile_options) {
  return tune(network, measurer, options, fake_compile, compile_options);
}

void check_evidence(const TunedKernel& tuned) {
  const TuningRecord& evidence = tuned.evidence;
  REQUIRE(!evidence.candidates.empty());
  const TuningCandidate& chosen = evidence.candidates.at(static_cast<std::size_t>(evidence.chosen));
  CHECK(chosen.fault.empty());
  CHECK(chosen.error.has_value());
  CHECK(chosen.plan == text_of(plan_of(tuned)));
  CHECK(tuned.candidate.provider == "conv_baked");
  CHECK(tuned.candidate.symbol == kernel_symbol(tuned.layer, plan_of(tuned)));
  CHECK(tuned.candidate.estimate.us == chosen.us);
  CHECK(tuned.candidate.estimate.source == Estimate::Source::measured);
  for (const TuningCandidate& candidate : evidence.candidates) {
    CHECK(candidate.provider == "conv_baked");
    if (candidate.fault.empty()) CHECK(candidate.us >= chosen.us);
  }
}

// Numbers plans in the order in which they are asked for.
class PlanNumbers {
 public:
  std::size_t of(const BakedPlan& plan) {
    const std::string text = text_of(plan);
    const auto known = std::ranges::find(plans_, text);
    if (known != plans_.end()) return static_cast<std::size_t>(known - plans_.begin());
    plans_.push_back(text);
    return plans_.size() - 1;
  }
  std::size_t size() const { return plans_.size(); }

 private:
  std::vector<std::string> plans_;
};

std::set<std::string> providers_of(const TunedKernel& tuned) {
  std::set<std::string> names;
  for (const TuningCandidate& candidate : tuned.evidence.candidates) names.insert(candidate.provider);
  return names;
}

}  // namespace

TEST_CASE("tune: takes the fastest, and the planner's own is the first candidate") {
  const Network network = one_layer();
  const BakedPlan own = make_plan(network.layers[0], analyse(network.layers[0]), {});
  FakeMeasurer measurer(network);
  measurer.baked_us = [&](const BakedPlan& plan) { return plan.groups.size() < own.groups.size() ? 3.0 : 4.0; };
  const std::vector<TunedKernel> tuned = tune(network, measurer);
  REQUIRE(tuned.size() == 1);
  check_evidence(tuned[0]);
  CHECK(tuned[0].layer == "conv");
  CHECK(tuned[0].batch == 1);
  CHECK(tuned[0].evidence.candidates[0].plan == text_of(own));
  CHECK(tuned[0].evidence.candidates[0].predicted_us == own.predicted_us);
  CHECK(plan_of(tuned[0]).groups.size() < own.groups.size());
  CHECK(tuned[0].evidence.device == "Fake H200");
  CHECK(tuned[0].evidence.arch == "sm_90");
  CHECK(tuned[0].evidence.driver_version == 13000);
  CHECK(tuned[0].evidence.code_copies == 8);
  for (const TuningCandidate& candidate : tuned[0].evidence.candidates) {
    CHECK(candidate.fault.empty());
    CHECK(candidate.samples == 50);
    if (candidate.error) CHECK(*candidate.error <= 1);
  }
  CHECK(tuned[0].evidence.candidates[0].error.has_value());
  CHECK(verify(plan_of(tuned[0]), network.layers[0].shape, analyse(network.layers[0])).empty());
}

TEST_CASE("tune: where all are equal the planner's own stays") {
  const Network network = one_layer();
  FakeMeasurer measurer(network);
  measurer.baked_us = [](const BakedPlan&) { return 5.0; };
  CHECK(tune(network, measurer).at(0).evidence.chosen == 0);
}

TEST_CASE("tune: steps from the best as long as they help") {
  const Network network = one_layer();
  FakeMeasurer measurer(network);
  // No first candidate loads 32 ahead; 8 -> 16 -> 32 are two steps.
  measurer.baked_us = [](const BakedPlan& plan) { return 10 + std::abs(std::log2(plan.load_ahead / 32.0)); };
  TuneOptions options;
  options.plans = 16;
  const TunedKernel tuned = tune(network, measurer, options).at(0);
  check_evidence(tuned);
  CHECK(plan_of(tuned).load_ahead == 32);
  CHECK(static_cast<int>(tuned.evidence.candidates.size()) <= 2 * options.plans);
}

TEST_CASE("tune: no plan is tried twice, and no more than twice the number asked for") {
  const Network network = one_layer();
  const SparsePattern pattern = analyse(network.layers[0]);
  for (const int plans : {1, 2, 5}) {
    CAPTURE(plans);
    FakeMeasurer measurer(network);
    std::multiset<std::string> tried;
    measurer.baked_us = [&](const BakedPlan& plan) {
      tried.insert(print(plan));
      return 100.0 / static_cast<double>(tried.size());  // each step seems to help
    };
    TuneOptions options;
    options.plans = plans;
    const TunedKernel tuned = tune(network, measurer, options).at(0);
    for (const std::string& plan : tried) CHECK(tried.count(plan) == 1);
    const std::size_t first = make_plans(network.layers[0], pattern, {}, static_cast<std::size_t>(plans)).size();
    CHECK(tried.size() == tuned.evidence.candidates.size());
    CHECK(tried.size() <= first + static_cast<std::size_t>(plans));
    CHECK(tried.size() > first);
  }
}

TEST_CASE("tune: a plan that computes something else is reported and never chosen") {
  const Network network = one_layer();
  FakeMeasurer measurer(network);
  measurer.baked_us = [](const BakedPlan& plan) { return static_cast<double>(plan.groups.size()); };
  std::size_t fewest = 1000;
  measurer.is_wrong = [&](const BakedPlan& plan) {
    fewest = std::min(fewest, plan.groups.size());
    return plan.groups.size() < 8;  // the fastest ones
  };
  const TunedKernel tuned = tune(network, measurer).at(0);
  check_evidence(tuned);
  REQUIRE(fewest < 8);
  CHECK(plan_of(tuned).groups.size() >= 8);
  int wrong = 0;
  for (const TuningCandidate& candidate : tuned.evidence.candidates) {
    if (candidate.fault.empty()) continue;
    ++wrong;
    CHECK_THAT(candidate.fault, burin_test::StartsWith("wrong: image 0, channel 16, row 0, col 0: "));
    CHECK(candidate.us == 0);
  }
  CHECK(wrong > 0);
  const auto compared = std::ranges::count_if(
      tuned.evidence.candidates, [](const TuningCandidate& candidate) { return candidate.error.has_value(); });
  CHECK(measurer.runs == wrong + compared);
  CHECK(measurer.timings == static_cast<int>(tuned.evidence.candidates.size()));
}

TEST_CASE("tune: a plan that does not assemble is recorded with what the assembler said") {
  const Network network = one_layer();
  const BakedPlan own = make_plan(network.layers[0], analyse(network.layers[0]), {});
  FakeMeasurer measurer(network);
  const auto compile = [&](const Task& task, const Candidate& candidate) {
    if (parse_baked_plan(candidate.plan).groups.size() == own.groups.size())
      fail(ErrorKind::internal, "ptxas: too large\nand a log of many lines \x1b");
    return fake_compile(task, candidate);
  };
  const TunedKernel tuned = tune(network, measurer, {}, compile).at(0);
  check_evidence(tuned);
  CHECK(plan_of(tuned).groups.size() != own.groups.size());
  const auto& candidates = tuned.evidence.candidates;
  CHECK(std::any_of(candidates.begin(), candidates.end(),
                    [](const TuningCandidate& candidate) { return candidate.fault == "ptxas: too large"; }));
}

TEST_CASE("tune: where no plan is left there is one clear error") {
  const Network network = one_layer();
  {
    FakeMeasurer measurer(network);
    measurer.is_wrong = [](const BakedPlan&) { return true; };
    const auto thrown = BURIN_THROWN(verification, tune(network, measurer));
    CHECK_THAT(thrown.text, burin_test::StartsWith("layer 'conv', batch 1: none of ") &&
                                burin_test::Contains("plans can be used") && burin_test::Contains("wrong: image 0"));
  }
  FakeMeasurer measurer(network);
  const auto compile = [](const Task&, const Candidate&) -> Package {
    fail(ErrorKind::unsupported, "the assembler does not know sm_90");
  };
  CHECK(BURIN_THROWN(unsupported, tune(network, measurer, {}, compile)).has("the assembler does not know sm_90"));
}

TEST_CASE("tune: a launch that fails is recorded, as long as the device works on") {
  const Network network = one_layer();
  const BakedPlan own = make_plan(network.layers[0], analyse(network.layers[0]), {});
  FakeMeasurer measurer(network);
  measurer.faults = [&](const BakedPlan& plan) { return plan.groups.size() == own.groups.size(); };
  const TunedKernel tuned = tune(network, measurer).at(0);
  check_evidence(tuned);
  const auto& candidates = tuned.evidence.candidates;
  CHECK(std::any_of(candidates.begin(), candidates.end(), [](const TuningCandidate& candidate) {
    return candidate.fault == "cuLaunchKernel: the fake faults";
  }));

  FakeMeasurer broken(network);
  broken.faults = measurer.faults;
  broken.a_fault_ends_all = true;
  const auto thrown = BURIN_THROWN(device, tune(network, broken));
  CHECK_THAT(thrown.text, burin_test::StartsWith("layer 'conv', batch 1, plan staging=") &&
                              burin_test::Contains("the fake faults; the device cannot be used any more"));
}

TEST_CASE("tune: what is no fault of a plan ends it all") {
  const Network network = one_layer();
  FakeMeasurer measurer(network);
  const auto compile = [](const Task&, const Candidate&) -> Package { throw std::bad_alloc(); };
  CHECK_THROWS_AS(tune(network, measurer, {}, compile), std::bad_alloc);
}

TEST_CASE("tune: a layer that cannot be planned is the planner's error") {
  const Network network = one_layer();
  FakeMeasurer measurer(network);
  CompileOptions options = baked_alone();
  options.plan = "splits=33";  // of 32 channels
  CHECK(BURIN_THROWN(usage, tune(network, measurer, {}, options)).has("no plan keeps --plan splits=33"));
}

TEST_CASE("tune: constraints hold for every candidate") {
  const Network network = one_layer();
  FakeMeasurer measurer(network);
  CompileOptions options = baked_alone();
  options.plan = "splits=2,ahead=4,barrier=256";
  int seen = 0;
  measurer.baked_us = [&](const BakedPlan& plan) {
    CHECK(plan.splits == 2);
    CHECK(plan.load_ahead == 4);
    CHECK(plan.barrier_every == 256);
    return 100.0 - ++seen;
  };
  check_evidence(tune(network, measurer, {}, options).at(0));
  CHECK(seen > 3);
}

TEST_CASE("tune: every candidate reads and writes the layouts asked for") {
  const Network network = one_layer();
  FakeMeasurer measurer(network);
  CompileOptions options = baked_alone();
  options.layout = TensorLayout::nchw4;
  measurer.baked_us = [&](const BakedPlan& plan) {
    CHECK(plan.input_layout == TensorLayout::nchw4);
    CHECK(plan.output_layout == TensorLayout::nchw4);
    return 5.0;
  };
  check_evidence(tune(network, measurer, {.plans = 3}, options).at(0));
}

TEST_CASE("tune: every layer and batch size, in order, whatever the number of threads") {
  const Network network = network_of({layer_of("a", 3), layer_of("b", 1)});
  TuneOptions options;
  options.plans = 4;
  CompileOptions compile_options = baked_alone();
  compile_options.batches = {1, 20};
  std::vector<TunedKernel> first;
  for (const int jobs : {1, 4}) {
    FakeMeasurer measurer(network);
    measurer.baked_us = [](const BakedPlan& plan) { return 1.0 + plan.threads % 7 + plan.splits; };
    options.jobs = jobs;
    const std::vector<TunedKernel> tuned = tune(network, measurer, options, compile_options);
    REQUIRE(tuned.size() == 4);
    for (std::size_t i = 0; i < tuned.size(); ++i) {
      check_evidence(tuned[i]);
      CHECK(tuned[i].layer == (i < 2 ? "a" : "b"));
      CHECK(tuned[i].batch == (i % 2 == 0 ? 1 : 20));
      CHECK(plan_of(tuned[i]).batch == tuned[i].batch);
      if (first.empty()) continue;
      CHECK(tuned[i].evidence == first[i].evidence);
      CHECK(tuned[i].candidate == first[i].candidate);
    }
    if (first.empty()) first = tuned;
  }
}

TEST_CASE("tune: progress counts up to the end") {
  const Network network = network_of({layer_of("a", 3), layer_of("b", 1)});
  FakeMeasurer measurer(network);
  std::vector<TuneProgress> seen;
  const CompileOptions options = baked_alone();
  tune_tasks(tuning_tasks(network, options).tasks, options, {.plans = 3, .jobs = 2}, fake_compile, measurer,
             [&](const TuneProgress& state) { seen.push_back(state); });
  REQUIRE(static_cast<int>(seen.size()) == measurer.timings);
  for (const TuneProgress& state : seen) {
    CHECK(state.kernels == 2);
    CHECK(state.kernels_done <= 1);
    CHECK(state.plans_done >= 1);
    CHECK(state.plans_done <= state.plans);
    CHECK(state.best_us > 0);
  }
  CHECK(seen.back().plans_done == seen.back().plans);
}

TEST_CASE("tune: candidates of every provider are measured, and the fastest one is taken") {
  ConvLayer few_pixels = layer_of("conv", 3);  // that conv_streamed can compute
  few_pixels.shape.in_h = few_pixels.shape.in_w = 7;
  const Network network = network_of({few_pixels});
  CompileOptions options;
  for (const std::string fastest : {"conv_baked", "conv_dense", "conv_streamed", "conv_winograd", "conv_fft"}) {
    CAPTURE(fastest);
    FakeMeasurer measurer(network);
    measurer.baked_us = [&](const BakedPlan&) { return fastest == "conv_baked" ? 1.0 : 5.0; };
    measurer.others_us = [&](const Kernel& kernel) { return fastest == kernel.provider ? 1.0 : 5.0; };
    const std::vector<TunedKernel> tuned = tune(network, measurer, {}, options);
    REQUIRE(tuned.size() == 1);
    CHECK(tuned[0].candidate.provider == fastest);
    CHECK(tuned[0].candidate.estimate.us == 1.0);
    CHECK(providers_of(tuned[0]) ==
          std::set<std::string>{"conv_baked", "conv_dense", "conv_streamed", "conv_winograd", "conv_fft"});
    CHECK(tuned[0].evidence.candidates.size() >= 12);
  }
  // What a person wants is what is measured.
  options.kernels.all = "conv_streamed";
  FakeMeasurer measurer(network);
  CHECK(providers_of(tune(network, measurer, {}, options).at(0)) == std::set<std::string>{"conv_streamed"});
}

TEST_CASE("tune: the first candidate is what the models choose") {
  const Network network = one_layer();
  const CompileOptions options;
  const TuningTasks tuning = tuning_tasks(network, options);
  const std::vector<Task>& tasks = tuning.tasks;
  const Choice choice = choose(tasks.at(0), options);
  FakeMeasurer measurer(network);
  const TunedKernel tuned = tune(network, measurer, {}, options).at(0);
  CHECK(tuned.evidence.candidates.at(0).provider == choice.candidate.provider);
  CHECK(tuned.evidence.candidates.at(0).predicted_us == choice.candidate.estimate.us);
}

TEST_CASE("tune: when the time is up nothing new is tried, and what has the most work came first") {
  // 1x1 filters have a ninth of the work.
  const Network network = network_of({layer_of("small", 1), layer_of("large", 3), layer_of("other", 1)});
  double now = 0;
  TuneOptions options;
  options.plans = 4;
  options.jobs = 1;
  options.budget = TimeBudget(100, [&now] { return now; });
  FakeMeasurer measurer(network);
  measurer.baked_us = [&](const BakedPlan&) {
    now += 60;  // what one measurement takes
    return 1000.0 - now;
  };
  const std::vector<TunedKernel> tuned = tune(network, measurer, options);
  // Two are in work at once, but for the second one there is no time, nor for more of the first one's candidates.
  REQUIRE(tuned.size() == 1);
  CHECK(tuned[0].layer == "large");
  CHECK(tuned[0].evidence.candidates.size() == 2);
  CHECK(tuned[0].evidence.chosen == 1);  // each measurement is better than the one before
  options.budget = {};
  CHECK(tune(network, measurer, options).size() == 3);
}

TEST_CASE("tune: what takes long to compile is tried as far as its model promises more than was measured") {
  ConvLayer large = layer_of("conv", 3);
  large.shape.in_channels = large.shape.out_channels = 192;
  large = burin_test::make_layer("conv", large.shape, 0.1);
  const Network network = network_of({large});
  CompileOptions options;
  options.precisions.all = Precision::tf32;
  const TuningTasks tuning = tuning_tasks(network, options);
  REQUIRE(find_provider(kBakedProvider)->takes_long_to_make(tuning.tasks.at(0)));
  REQUIRE(choose(tuning.tasks.at(0), options).candidate.provider != kBakedProvider);
  const std::vector<Candidate> baked = find_provider(kBakedProvider)->propose(tuning.tasks.at(0), {.count = 4});
  REQUIRE(baked.size() > 1);
  FakeMeasurer measurer(network);
  // How many baked kernels are tried where others take so long, and they take so many times what their model says.
  const auto tried = [&](double others_us, double off) {
    measurer.others_us = [=](const Kernel&) { return others_us; };
    measurer.baked_us = [&](const BakedPlan& plan) { return off * plan.predicted_us; };
    const TunedKernel tuned = tune(network, measurer, {}, options).at(0);
    CHECK(tuned.evidence.candidates.front().provider != kBakedProvider);
    return std::ranges::count(tuned.evidence.candidates, kBakedProvider, &TuningCandidate::provider);
  };
  const double promised = baked.front().estimate.us;
  CHECK(tried(promised / 2, 1) == 0);
  CHECK(tried(promised * 1.2, 2) == 1);  // the first shows that the model promises too much
  CHECK(tried(promised * 1.2, 1) > 1);
}

TEST_CASE("tune: those near the best take turns, and the fastest then is chosen") {
  const Network network = one_layer();
  FakeMeasurer measurer(network);
  // Far behind the first two, which differ by two percent: a clock that drifted may have made the second one faster.
  PlanNumbers numbers;
  measurer.baked_us = [&](const BakedPlan& plan) {
    const std::size_t index = numbers.of(plan);
    const bool again = !measurer.turns.empty();
    if (index == 0) return again ? 102.0 : 100.0;
    if (index == 1) return again ? 100.0 : 102.0;
    return 200.0 + static_cast<double>(index);
  };
  const std::vector<TunedKernel> tuned = tune(network, measurer, {.plans = 4, .jobs = 1});
  CHECK(measurer.turns == std::vector<std::size_t>{2});
  REQUIRE(tuned.size() == 1);
  REQUIRE(numbers.size() >= 3);
  CHECK(numbers.of(plan_of(tuned[0])) == 1);
  check_evidence(tuned[0]);
}

TEST_CASE("tune: who is far ahead takes no turns, nor does anyone when the time is up") {
  const Network network = one_layer();
  double now = 0;
  TuneOptions options{.plans = 3, .jobs = 1};
  FakeMeasurer measurer(network);
  measurer.baked_us = [&](const BakedPlan&) { return 100.0 + 10 * (now += 1); };
  REQUIRE(tune(network, measurer, options).size() == 1);
  CHECK(measurer.turns.empty());
  measurer.baked_us = [&](const BakedPlan&) {
    now += 60;
    return 100.0;
  };
  options.budget = TimeBudget(1, [&now] { return now; });
  REQUIRE(tune(network, measurer, options).size() == 1);
  CHECK(measurer.turns.empty());
  options.budget = {};
  REQUIRE(tune(network, measurer, options).size() == 1);
  REQUIRE(measurer.turns.size() == 1);
  CHECK(measurer.turns[0] >= 3);
}

TEST_CASE("tune: what takes much longer than the best is not compared with the reference, and never taken") {
  const Network network = one_layer();
  FakeMeasurer measurer(network);
  PlanNumbers numbers;
  // The models' choice is slow, and compared all the same; the second is the best, and those behind it are wrong.
  measurer.baked_us = [&](const BakedPlan& plan) { return numbers.of(plan) == 1 ? 100.0 : 300.0; };
  measurer.is_wrong = [&](const BakedPlan& plan) { return numbers.of(plan) > 1; };
  const TunedKernel tuned = tune(network, measurer, {.plans = 4, .jobs = 1}, baked_alone()).at(0);
  check_evidence(tuned);
  CHECK(tuned.evidence.chosen == 1);
  CHECK(measurer.runs == 2);
  const std::vector<TuningCandidate>& candidates = tuned.evidence.candidates;
  REQUIRE(candidates.size() > 3);
  CHECK(measurer.timings == std::ssize(candidates));
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    CHECK(candidates[i].fault.empty());
    CHECK(candidates[i].us > 0);
    CHECK(candidates[i].error.has_value() == (i < 2));
  }
}

TEST_CASE("tune: a later run takes from the cache what was too slow to be compared, whenever it was measured") {
  const Network network = one_layer();
  FakeMeasurer measurer(network);
  const TunedKernel by_models = tune(network, measurer, {.plans = 4, .jobs = 1}, baked_alone()).at(0);
  REQUIRE(by_models.evidence.candidates.size() > 3);
  const std::string late = by_models.evidence.candidates[1].plan, fast = by_models.evidence.candidates[2].plan;
  // The second is measured when the third, the best, has been: of two threads that compile one waits for it.
  std::atomic<bool> is_best_known = false;
  measurer.baked_us = [&](const BakedPlan& plan) {
    if (text_of(plan) != fast) return 300.0;
    is_best_known = true;
    is_best_known.notify_all();
    return 100.0;
  };
  const ScratchFolder folder;
  const KernelCache cache(folder / "cache", std::int64_t{1} << 30);
  CompileOptions options = baked_alone();
  options.cache = &cache;
  const auto compile = [&](const Task& task, const Candidate& candidate) {
    if (text_of(parse_baked_plan(candidate.plan)) == late) is_best_known.wait(false);
    return fake_compile(task, candidate);
  };
  const auto run = [&] {
    measurer.runs = measurer.timings = 0;
    const Network prepared = prepare_graph(network, std::nullopt, graph_choices(options));
    return tune_tasks(tuning_tasks(prepared, options).tasks, options, {.plans = 4, .jobs = 3}, compile, measurer, {});
  };
  const Tuned first = run();
  REQUIRE(first.kernels.size() == 1);
  CHECK_FALSE(first.kernels[0].evidence.candidates.at(1).error.has_value());
  CHECK(run().measured == 0);
  CHECK(measurer.runs == 0);
  CHECK(measurer.timings == 0);
}

TEST_CASE("tune: what takes little more than the fastest, and the models' choice, are its rivals") {
  const Network network = one_layer();
  FakeMeasurer measurer(network);
  PlanNumbers numbers;
  double models_us = 300;
  // All but the models' choice, which is far behind, take one percent longer than the one before.
  measurer.baked_us = [&](const BakedPlan& plan) {
    const auto index = static_cast<double>(numbers.of(plan));
    return index == 0 ? models_us : 100.0 + index;
  };
  const TunedKernel tuned = tune(network, measurer, {.plans = 12, .jobs = 1}).at(0);
  check_evidence(tuned);
  REQUIRE(tuned.rivals.size() == 3);
  CHECK(tuned.rivals.back().index == 0);
  double before_us = tuned.candidate.estimate.us;
  for (const Rival& rival : tuned.rivals) {
    const TuningCandidate& tried = tuned.evidence.candidates.at(static_cast<std::size_t>(rival.index));
    CHECK(rival.index != tuned.evidence.chosen);
    CHECK(rival.candidate.estimate.us == tried.us);
    CHECK(rival.candidate.estimate.source == Estimate::Source::measured);
    CHECK(find_provider(rival.candidate.provider)->brief(rival.candidate.plan) == tried.plan);
    CHECK(rival.candidate.estimate.us >= before_us);
    before_us = rival.candidate.estimate.us;
  }
  // What is wrong is nobody's rival, nor is what takes much longer.
  measurer.is_wrong = [&](const BakedPlan& plan) { return numbers.of(plan) == 0; };
  const TunedKernel without = tune(network, measurer, {.plans = 12, .jobs = 1}).at(0);
  REQUIRE(!without.rivals.empty());
  for (const Rival& rival : without.rivals) CHECK(rival.index != 0);
  measurer.is_wrong = [](const BakedPlan&) { return false; };
  models_us = 50;
  CHECK(tune(network, measurer, {.plans = 12, .jobs = 1}).at(0).rivals.empty());
}

TEST_CASE("tune: a later run takes what was measured before, and goes on") {
  const ScratchFolder folder;
  const KernelCache cache(folder / "cache", std::int64_t{1} << 30);
  CompileOptions options = baked_alone();
  options.cache = &cache;
  const Network network = network_of({layer_of("a", 3), layer_of("b", 1)});
  double now = 0;
  std::atomic<int> compiled = 0;
  TuneOptions tuning{.plans = 3, .budget = TimeBudget(100, [&now] { return now; }), .jobs = 1};
  FakeMeasurer measurer(network);
  measurer.baked_us = [&](const BakedPlan& plan) {
    now += 60;
    return 1000.0 / plan.threads;
  };
  const auto run = [&] {
    const Network prepared = prepare_graph(network, std::nullopt, graph_choices(options));
    const auto compile = [&](const Task& task, const Candidate& candidate) {
      ++compiled;
      return fake_compile(task, candidate);
    };
    return tune_tasks(tuning_tasks(prepared, options).tasks, options, tuning, compile, measurer, {});
  };
  const Tuned first = run();  // the time is up after the second measurement
  CHECK(first.from_cache == 0);
  CHECK(first.measured == measurer.timings);
  REQUIRE(!first.kernels.empty());
  tuning.budget = {};
  measurer.timings = 0;
  const Tuned second = run();
  CHECK(second.from_cache == first.measured);
  CHECK(second.measured == measurer.timings);
  REQUIRE(second.kernels.size() == 2);
  CHECK(second.measured > 0);
  // By now all is known, times of turns as well, and nothing is measured; not even a compiler is asked.
  measurer.timings = measurer.runs = 0;
  measurer.turns.clear();
  compiled = 0;
  const Tuned third = run();
  CHECK(compiled == 0);
  CHECK(third.measured == 0);
  CHECK(third.from_cache == second.from_cache + second.measured);
  CHECK(measurer.timings == 0);
  CHECK(measurer.runs == 0);
  CHECK(measurer.turns.empty());
  REQUIRE(third.kernels.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(third.kernels[i].candidate == second.kernels[i].candidate);
    CHECK(third.kernels[i].evidence == second.kernels[i].evidence);
  }
  // What is known counts when the time is up, too.
  tuning.budget = TimeBudget(1, [&now] { return now += 1000; });
  const Tuned late = run();
  REQUIRE(late.kernels.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(late.kernels[i].candidate == third.kernels[i].candidate);
    CHECK(late.kernels[i].evidence == third.kernels[i].evidence);
  }
  CHECK(late.was_time_up);
  CHECK(measurer.timings == 0);
  // All are measured again where that is asked for.
  tuning.budget = {};
  tuning.anew = true;
  const Tuned anew = run();
  CHECK(anew.from_cache == 0);
  CHECK(anew.measured == third.from_cache);
}

TEST_CASE("tune: times of turns are compared with each other alone, now and in a later run") {
  const ScratchFolder folder;
  const KernelCache cache(folder / "cache", std::int64_t{1} << 30);
  CompileOptions options = baked_alone();
  options.cache = &cache;
  const Network network = one_layer();
  FakeMeasurer measurer(network);
  measurer.drift = 1.1;  // by now the clock is slower: with times of before, the third would seem to be the fastest
  PlanNumbers numbers;
  measurer.baked_us = [&](const BakedPlan& plan) {
    const std::size_t index = numbers.of(plan);
    const bool again = !measurer.turns.empty();
    if (index == 0) return again ? 102.0 : 100.0;
    if (index == 1) return 101.0;
    return 106.0 + static_cast<double>(index);
  };
  const auto run = [&](double budget_s) {
    const Network prepared = prepare_graph(network, std::nullopt, graph_choices(options));
    double now = 0;
    const TuneOptions tuning{.plans = 4, .budget = TimeBudget(budget_s, [&now] { return now += 1e-3; }), .jobs = 1};
    return tune_tasks(tuning_tasks(prepared, options).tasks, options, tuning, fake_compile, measurer, {});
  };
  const Tuned first = run(0);
  REQUIRE(first.kernels.size() == 1);
  REQUIRE(numbers.size() >= 3);
  CHECK(measurer.turns == std::vector<std::size_t>{2});
  CHECK(numbers.of(plan_of(first.kernels[0])) == 1);
  CHECK(first.kernels[0].candidate.estimate.us == Approx(101 * 1.1));
  for (const double budget_s : {0.0, 1e-9}) {
    const Tuned again = run(budget_s);
    REQUIRE(again.kernels.size() == 1);
    CHECK(again.kernels[0].candidate == first.kernels[0].candidate);
    CHECK(again.kernels[0].evidence == first.kernels[0].evidence);
  }
  CHECK(measurer.turns.size() == 1);
}

TEST_CASE(
    "tune: what computes something else is known to a later run, and one that lost the device is not tried again") {
  const ScratchFolder folder;
  const KernelCache cache(folder / "cache", std::int64_t{1} << 30);
  CompileOptions options = baked_alone();
  options.cache = &cache;
  const Network network = one_layer();
  std::string bad;
  const auto run = [&](FakeMeasurer& measurer) {
    const Network prepared = prepare_graph(network, std::nullopt, graph_choices(options));
    return tune_tasks(tuning_tasks(prepared, options).tasks, options, {.plans = 4, .jobs = 1}, fake_compile, measurer,
                      {});
  };
  FakeMeasurer first(network);
  int seen = 0;
  first.is_wrong = [&](const BakedPlan& plan) {
    if (++seen == 2) bad = text_of(plan);
    return text_of(plan) == bad;
  };
  first.baked_us = [](const BakedPlan&) { return 100.0; };
  first.faults = [&](const BakedPlan&) { return first.timings == 5; };
  first.a_fault_ends_all = true;
  CHECK_THAT(BURIN_THROWN(device, run(first)).text, burin_test::Contains("cannot be used any more"));
  FakeMeasurer second(network);
  const Tuned tuned = run(second);
  REQUIRE(tuned.kernels.size() == 1);
  CHECK(tuned.from_cache == 5);  // three times, and two faults
  const auto faults = std::ranges::count_if(tuned.kernels[0].evidence.candidates,
                                            [](const TuningCandidate& candidate) { return !candidate.fault.empty(); });
  CHECK(faults == 2);
}

TEST_CASE("tune: a layer of which nothing can be used is the models' where the time was up, or not all were asked") {
  const Network network = network_of({layer_of("a", 3), layer_of("b", 1)});
  FakeMeasurer measurer(network);
  measurer.faults = [](const BakedPlan&) { return true; };
  const CompileOptions options;
  const Network prepared = prepare_graph(network, std::nullopt, graph_choices(options));
  const TuningTasks tasks = tuning_tasks(prepared, options);
  measurer.others_us = [](const Kernel&) -> double { fail(ErrorKind::device, "it cannot be launched"); };
  const Tuned tuned =
      tune_tasks(tasks.tasks, options, {.plans = 2, .providers = {"conv_baked"}}, fake_compile, measurer, {});
  CHECK(tuned.kernels.empty());
  REQUIRE(tuned.notes.size() == 2);
  CHECK_THAT(tuned.notes[0], burin_test::Contains("the models choose"));
}

TEST_CASE("tune: what is kept of measurements is text for a person, and damaged files are measured again") {
  const ScratchFolder folder;
  const KernelCache cache(folder / "cache", std::int64_t{1} << 30);
  CompileOptions options = baked_alone();
  options.cache = &cache;
  const Network network = one_layer();
  FakeMeasurer measurer(network);
  const auto run = [&] {
    const Network prepared = prepare_graph(network, std::nullopt, graph_choices(options));
    return tune_tasks(tuning_tasks(prepared, options).tasks, options, {.plans = 2}, fake_compile, measurer, {});
  };
  const Tuned first = run();
  std::vector<std::filesystem::path> files;
  for (const auto& file : std::filesystem::directory_iterator(folder / "cache")) {
    if (file.path().string().ends_with(".times.json")) files.push_back(file.path());
  }
  REQUIRE(files.size() == 1);
  const std::string text = burin_test::read_file(files[0]);
  for (const char* said :
       {"\"layer\": \"conv\"", "\"device\": \"Fake H200\"", "\"provider\": \"conv_baked\"", "\"us\": "}) {
    CHECK(text.find(said) != std::string::npos);
  }
  int damaged = 0;
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{{"\"us\": ", "\"us\": -"},
                                                                                 {"\"us\": ", "\"us\": \"x"},
                                                                                 {"\"samples\"", "\"simples\""},
                                                                                 {"{", "["},
                                                                                 {"\"error\": ", "\"error\": 1"}}) {
    std::string changed = text;
    for (std::size_t at = 0; (at = changed.find(from, at)) != std::string::npos; at += to.size()) {
      changed.replace(at, from.size(), to);
      ++damaged;
    }
    burin_test::write_file(files[0], changed);
    const Tuned again = run();
    INFO(from << " became " << to);
    CHECK(again.from_cache < first.measured);
    REQUIRE(again.kernels.size() == 1);
    CHECK(again.kernels[0].candidate == first.kernels[0].candidate);
  }
  CHECK(damaged > 5);
}

TEST_CASE("tune: only the providers that are asked are measured") {
  const Network network = network_of({layer_of("conv", 3), layer_of("other", 1)});
  const CompileOptions options;
  std::map<std::string, std::string> all;  // the models' choices
  FakeMeasurer of_all(network);
  for (const TunedKernel& kernel : tune(network, of_all, {.plans = 4}, options)) {
    all[kernel.layer] = kernel.evidence.candidates[0].provider;
  }
  for (const std::string provider : {"conv_dense", "conv_baked"}) {
    FakeMeasurer measurer(network);
    const std::vector<TunedKernel> tuned = tune(network, measurer, {.plans = 4, .providers = {provider}}, options);
    REQUIRE(tuned.size() == 2);
    for (const TunedKernel& kernel : tuned) {
      // The models' choice is there to be compared with.
      const std::string by_models = kernel.evidence.candidates[0].provider;
      CHECK(providers_of(kernel) == std::set<std::string>{provider, by_models});
      CHECK(by_models == all.at(kernel.layer));
    }
  }
  // None of these is for such a layer: the models choose.
  FakeMeasurer measurer(network);
  CHECK(tune(network, measurer, {.plans = 4, .providers = {"conv_depthwise"}}, options).empty());
  CHECK(measurer.timings == 0);
}

namespace {

Network one_fully_connected() {
  Network network;
  network.source = "test";
  network.tensors = {{"x", {200}}, {"y", {30}}};
  network.inputs = {0};
  network.outputs = {1};
  Linear op;
  op.in_features = 200;
  op.out_features = 30;
  op.bias.assign(30, 0.5F);
  op.function = function_of(Activation::relu);
  for (int i = 0; i < 200 * 30; ++i) op.weights.push_back(i % 7 == 0 ? static_cast<float>(i % 5) - 1.5F : 0.0F);
  network.operators.push_back({"fc", op, {0}, 1});
  return network;
}

}  // namespace

TEST_CASE("tune: fully connected layers, dense and sparse") {
  const Network network = one_fully_connected();
  for (const std::string fastest : {"linear", "linear_sparse"}) {
    FakeMeasurer measurer(network);
    measurer.others_us = [&](const Kernel& kernel) { return kernel.provider == fastest ? 1.0 : 2.0; };
    const CompileOptions options;
    std::vector<TunedKernel> tuned = tune(network, measurer, {}, options);
    REQUIRE(tuned.size() == 1);
    CHECK(providers_of(tuned[0]) == std::set<std::string>{"linear", "linear_sparse"});
    for (const TuningCandidate& candidate : tuned[0].evidence.candidates) CHECK(candidate.fault.empty());
    CHECK(tuned[0].candidate.provider == fastest);
    CompileOptions measured = options;
    measured.tuned = std::move(tuned);
    const TuningTasks tuning = tuning_tasks(network, measured);
    const std::vector<Task>& tasks = tuning.tasks;
    const Choice choice = choose(tasks.at(0), measured);
    CHECK(choice.candidate.provider == fastest);
    CHECK(choice.candidate.estimate.source == Estimate::Source::measured);
  }
}

namespace {

// Engines of the graph API are none for FP32.
constexpr int kForwardAlgorithms = static_cast<int>(ConvolutionAlgorithm::engine_0);

}  // namespace

TEST_CASE("tune: where the device has cuDNN its algorithms are measured beside the models' candidates") {
  ConvLayer layer = layer_of("conv", 3);
  layer.shape.epilogue.function = function_of(Activation::relu);
  const Network network = network_of({layer});
  FakeMeasurer measurer(network);
  measurer.libraries = {{Library::cudnn, "9.19.0"}};
  measurer.others_us = [](const Kernel& kernel) {
    if (!kernel.call) return 50.0;
    return kernel.call->algorithm == CallAlgorithm(ConvolutionAlgorithm::gemm) ? 2.0 : 3.0;
  };
  measurer.baked_us = [](const BakedPlan&) { return 50.0; };
  const TuneOptions few{.plans = 2};
  const TunedKernel tuned = tune(network, measurer, few, CompileOptions()).at(0);
  CHECK(tuned.candidate.provider == kCudnnProvider);
  CHECK(tuned.evidence.libraries == "cuDNN 9.19.0");
  CHECK(tuned.evidence.candidates.at(static_cast<std::size_t>(tuned.evidence.chosen)).plan == "algorithm=gemm");
  std::set<std::string> plans;
  for (const TuningCandidate& candidate : tuned.evidence.candidates) {
    if (candidate.provider == kCudnnProvider) plans.insert(candidate.plan);
  }
  CHECK(plans.size() == kForwardAlgorithms);
  CHECK(providers_of(tuned).size() > 1);

  // It is what the package gets, though no model speaks for it.
  CompileOptions options;
  options.tuned = {tuned};
  const Network prepared = prepare_graph(network, std::nullopt, graph_choices(options));
  const TuningTasks tasks = tuning_tasks(prepared, options);
  const Choice choice = choose(tasks.tasks.at(0), options);
  CHECK(choice.candidate.provider == kCudnnProvider);
  CHECK(choice.options.at(0).measured);
  CHECK(choose(tasks.tasks.at(0), CompileOptions()).candidate.provider != kCudnnProvider);

  CompileOptions without;
  without.libraries = false;
  CHECK(!providers_of(tune(network, measurer, few, without).at(0)).contains(std::string(kCudnnProvider)));
  measurer.libraries.clear();
  CHECK(!providers_of(tune(network, measurer, few, CompileOptions()).at(0)).contains(std::string(kCudnnProvider)));
}

TEST_CASE("tune: a call that is right on numbers and not on infinities is left out") {
  const Network network = network_of({layer_of("conv", 3)});
  FakeMeasurer measurer(network);
  measurer.libraries = {{Library::cudnn, "9.19.0"}};
  measurer.others_us = [](const Kernel& kernel) {
    if (!kernel.call) return 50.0;
    return kernel.call->algorithm == CallAlgorithm(ConvolutionAlgorithm::implicit_precomp_gemm) ? 2.0 : 90.0;
  };
  measurer.baked_us = [](const BakedPlan&) { return 40.0; };
  const auto chosen_provider = [&] { return tune(network, measurer, {.plans = 2}, CompileOptions()).at(0); };
  CHECK(chosen_provider().candidate.provider == kCudnnProvider);
  measurer.loses_infinities = [](const Kernel& kernel) { return kernel.call.has_value(); };
  const TunedKernel tuned = chosen_provider();
  CHECK(tuned.candidate.provider != kCudnnProvider);
  // Slow calls are not tried so. They are when nothing else is asked for, whatever the cache has.
  const ScratchFolder folder;
  const KernelCache cache(folder / "cache", std::int64_t{1} << 30);
  CompileOptions options;
  options.cache = &cache;
  measurer.others_us = [](const Kernel& kernel) { return kernel.call ? 90.0 : 50.0; };
  CHECK(tune(network, measurer, {.plans = 2}, options).at(0).candidate.provider != kCudnnProvider);
  measurer.baked_us = [](const BakedPlan&) { return 200.0; };
  measurer.others_us = [](const Kernel& kernel) { return kernel.call ? 90.0 : 200.0; };
  const std::vector<TunedKernel> calls_alone =
      tune(network, measurer, {.plans = 2, .providers = {std::string(kCudnnProvider)}}, options);
  REQUIRE(calls_alone.size() == 1);
  CHECK(calls_alone[0].candidate.provider != kCudnnProvider);
  int left_out = 0;
  for (const TuningCandidate& candidate : tuned.evidence.candidates) {
    if (candidate.plan != "algorithm=implicit_precomp_gemm") continue;
    CHECK(candidate.fault.starts_with("with NaN and infinities among the inputs wrong: image 0, "));
    ++left_out;
  }
  CHECK(left_out == 1);
}

TEST_CASE("tune: times are kept whatever libraries are there, but for those of a library's calls") {
  const ScratchFolder folder;
  const KernelCache cache(folder / "cache", std::int64_t{1} << 30);
  ConvLayer layer = layer_of("conv", 3);
  layer.shape.epilogue.function = function_of(Activation::relu);
  const Network network = network_of({layer});
  FakeMeasurer measurer(network);
  measurer.baked_us = [](const BakedPlan&) { return 50.0; };
  measurer.others_us = [](const Kernel& kernel) { return kernel.call ? 20.0 : 90.0; };
  CompileOptions options;
  options.cache = &cache;
  const auto run = [&] {
    const Network prepared = prepare_graph(network, std::nullopt, graph_choices(options));
    const TuneOptions tuning{.plans = 2, .jobs = 1};
    return tune_tasks(tuning_tasks(prepared, options).tasks, options, tuning, fake_compile, measurer, {});
  };
  const int own = run().measured;
  REQUIRE(own > 0);
  const int calls = kForwardAlgorithms;
  // How many were measured, and how many were known; no more steps are taken from a call.
  const auto counts = [&] {
    const Tuned tuned = run();
    REQUIRE(tuned.kernels.size() == 1);
    CHECK((tuned.kernels[0].candidate.provider == kCudnnProvider) == !measurer.libraries.empty());
    return std::pair(tuned.measured, tuned.from_cache);
  };
  measurer.libraries = {{Library::cudnn, "9.19.0"}};
  const auto [measured, known] = counts();
  CHECK(measured == calls);
  CHECK((known > 0 && known <= own));
  CHECK(counts() == std::pair(0, known + calls));
  measurer.libraries.clear();
  CHECK(counts() == std::pair(0, own));
  measurer.libraries = {{Library::cudnn, "9.20.0"}};
  CHECK(counts() == std::pair(calls, known));
  measurer.libraries.push_back({Library::cublaslt, "13.0.2"});
  CHECK(counts() == std::pair(0, known + calls));
}

TEST_CASE("tune: of several libraries those are called that are there") {
  ConvLayer layer = layer_of("conv", 1);
  layer.shape.epilogue.function = function_of(Activation::relu);
  const Network network = network_of({layer});
  FakeMeasurer measurer(network);
  measurer.libraries = {{Library::cudnn, "9.19.0"}, {Library::cublaslt, "13.0.2"}};
  measurer.others_us = [](const Kernel& kernel) {
    if (!kernel.call) return 50.0;
    return kernel.call->algorithm == CallAlgorithm(ProductAlgorithm::heuristic_2) ? 2.0 : 3.0;
  };
  measurer.baked_us = [](const BakedPlan&) { return 50.0; };
  const TunedKernel tuned = tune(network, measurer, {.plans = 2}, CompileOptions()).at(0);
  CHECK(tuned.candidate.provider == kConvCublasProvider);
  CHECK(tuned.evidence.libraries == "cuDNN 9.19.0, cuBLASLt 13.0.2");
  CHECK(tuned.evidence.candidates.at(static_cast<std::size_t>(tuned.evidence.chosen)).plan == "algorithm=heuristic_2");
  CHECK(providers_of(tuned).contains(std::string(kCudnnProvider)));
  measurer.libraries.erase(measurer.libraries.begin());
  CHECK(!providers_of(tune(network, measurer, {.plans = 2}, CompileOptions()).at(0))
             .contains(std::string(kCudnnProvider)));
}

TEST_CASE(
    "tune: calls of cuBLASLt are measured for fully connected layers, whatever kernels convolutions are to have") {
  const Network network = one_fully_connected();
  FakeMeasurer measurer(network);
  measurer.libraries = {{Library::cublaslt, "13.0.2"}};
  measurer.others_us = [](const Kernel& kernel) { return kernel.call ? 1.0 : 2.0; };
  CompileOptions options;
  for (const std::string kind : {"auto", "conv_dense"}) {
    options.kernels.all = kind;
    const TunedKernel tuned = tune(network, measurer, {.plans = 2}, options).at(0);
    CHECK(tuned.candidate.provider == kLinearCublasProvider);
    CompileOptions measured = options;
    measured.tuned = {tuned};
    CHECK(choose(tuning_tasks(network, measured).tasks.at(0), measured).candidate.provider == kLinearCublasProvider);
    // Without a measurement nobody calls a library whom no option asks to.
    CHECK(choose(tuning_tasks(network, options).tasks.at(0), options).candidate.provider != kLinearCublasProvider);
  }
  options.kernels.of_layers["fc"] = "linear";
  CHECK(providers_of(tune(network, measurer, {.plans = 2}, options).at(0)) == std::set<std::string>{"linear"});
  options.kernels.of_layers["fc"] = kLinearCublasProvider;
  CHECK(choose(tuning_tasks(network, options).tasks.at(0), options).candidate.provider == kLinearCublasProvider);
}

TEST_CASE("tune: what is measured first are the formats of the graph, then others while time is left") {
  burin_test::GraphBuilder graph;
  int y = graph.input({32, 14, 14}, "x");
  for (const std::string name : {"a", "b"}) y = graph.convolution(layer_of(name, 3), {y});
  Network network = graph.finish({y});
  network.source = "net.onnx";
  CompileOptions options;
  options.batches = {8};
  options.precisions.all = Precision::tf32;
  options.libraries = false;
  FakeMeasurer measurer(network);
  double now = 0;
  measurer.others_us = [&](const Kernel& kernel) {
    ++now;
    return kernel.predicted_us;
  };
  TuneOptions tune_options{.plans = 2};
  const auto tuned = [&] {
    return tune_graphs(ProgramGraphs(network), options, tune_options, fake_compile, measurer, {});
  };
  const auto layouts_of = [](const Tuned& of) {
    std::set<std::string> layouts;
    for (const TunedKernel& kernel : of.kernels) layouts.emplace(to_string(kernel.formats.input.layout));
    return layouts;
  };
  const Tuned without = tuned();
  CHECK(without.kernels.size() == 2);
  CHECK(layouts_of(without) == std::set<std::string>{"n4c8hw"});
  CHECK(without.tasks == 2);
  CHECK(without.left_to_models == 0);
  CHECK(without.notes.empty());

  tune_options.other_formats = true;
  const Tuned with = tuned();
  CHECK(with.kernels.size() > without.kernels.size());
  CHECK(layouts_of(with).size() > 1);
  CHECK(with.tasks == 2);
  CHECK(with.left_to_models == 0);
  CHECK(with.measured > without.measured);
  REQUIRE(with.notes.size() == 1);
  CHECK(with.notes[0].find("in other formats were measured, too") != std::string::npos);
  for (const TunedKernel& kernel : with.kernels) {
    CHECK(std::ranges::count_if(with.kernels, [&](const TunedKernel& other) {
            return other.layer == kernel.layer && other.formats == kernel.formats;
          }) == 1);
  }

  // Where nothing can be used in another format, that is said, and changes nothing.
  const Tuned refused = tune_graphs(ProgramGraphs(network), options, tune_options,
                                    [&](const Task& task, const Candidate& candidate) {
                                      if (task.writes.layout != TensorLayout::n4c8hw)
                                        fail(ErrorKind::unsupported, "refused");
                                      return fake_compile(task, candidate);
                                    },
                                    measurer, {});
  CHECK(refused.kernels.size() == without.kernels.size());
  REQUIRE(refused.notes.size() > 1);
  CHECK(refused.notes[1].starts_with("in another format, layer '"));

  // Other formats get half of the time that those of the graph took, or a twentieth of all.
  const auto tuned_within = [&](double seconds) {
    now = 0;
    tune_options.budget = TimeBudget(seconds, [&now] { return now; });
    return tuned();
  };
  tune_options.jobs = 1;
  tune_options.other_formats = false;
  tuned_within(1000);
  const double first = now;
  tune_options.other_formats = true;
  tuned_within(2 * first);
  constexpr double kBegun = 5;  // a candidate, and the turns of four
  CHECK(now > first);
  CHECK(now <= 1.5 * first + kBegun);
  tuned_within(1000);
  CHECK(now > 1.5 * first + kBegun);  // there is more to measure

  // What was known before takes no time, and leaves other formats a twentieth of all.
  const ScratchFolder folder;
  const KernelCache cache(folder / "cache", std::int64_t{1} << 30);
  options.cache = &cache;
  tune_options.other_formats = false;
  tuned_within(1000);
  tune_options.other_formats = true;
  const Tuned later = tuned_within(200);
  CHECK(later.measured > 0);
  CHECK(now <= 10 + kBegun);
  options.cache = nullptr;

  // The time suffices for the first kernel alone.
  const Tuned few = tuned_within(1);
  CHECK(few.left_to_models > 0);
  CHECK(layouts_of(few).size() <= 1);
}
