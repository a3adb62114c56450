#include "compiler/study/study.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "compiler/choose/choose.h"
#include "compiler/kernel_cache.h"
#include "compiler/study/point_task.h"
#include "ir/error.h"
#include "ir/limits.h"
#include "test/catch.h"
#include "test/scratch_folder.h"
#include "test/thrown.h"
#include "test/tune/fake_measurer.h"

using namespace burin;
using burin_test::Contains;
using burin_test::ScratchFolder;

namespace {

const StudyLayer kBase = parse_study_layer("c=16 h=8 r=3 zeros=0.9");

// A GPU that computes what each layer says, and takes as long as a test says.
class FakeGpu : public Measurer {
 public:
  std::function<double(const Kernel&)> us = [](const Kernel& kernel) { return kernel.predicted_us; };
  std::function<bool(const Kernel&)> is_wrong = [](const Kernel&) { return false; };
  std::function<bool(const Kernel&)> faults = [](const Kernel&) { return false; };
  bool a_fault_ends_all = false;
  std::vector<std::size_t> turns;  // how many kernels took turns, of each call

  CandidateCompiler compiler() {
    return [this](const Task& task, const Candidate& candidate) {
      Package package = burin_test::fake_compile(task, candidate);
      const std::lock_guard lock(mutex_);
      package.manifest.source = fmt::format("{}", layers_.size());
      layers_.emplace(package.manifest.source, *task.layer);
      return package;
    };
  }

  TuningDevice device() const override { return {"Fake H200", "sm_90", 13000, 8, {}}; }
  void run(const Package& package, int batch, std::span<const float> input, std::span<const float> residual,
           std::span<float> output) override {
    const std::lock_guard lock(mutex_);
    const std::vector<double> right =
        reference_convolution(layers_.at(package.manifest.source), batch, input, residual);
    std::ranges::transform(right, output.begin(), [](double value) { return static_cast<float>(value); });
    if (is_wrong(package.manifest.kernels.front())) output.front() += 1;
  }
  std::vector<Timing> time_in_turns(std::span<const Package* const> packages, int, std::span<const float>) override {
    turns.push_back(packages.size());
    std::vector<Timing> timings;
    for (const Package* package : packages) {
      const Kernel& kernel = package->manifest.kernels.front();
      Timing& timing = timings.emplace_back();
      timing.time = {us(kernel), 50, 4096};
      if (!faults(kernel)) continue;
      timing.fault = Error(ErrorKind::device, "cuGraphLaunch: the fake faults\nand more");
      lost_ = a_fault_ends_all;
    }
    return timings;
  }
  bool usable() override { return !lost_; }

 private:
  std::mutex mutex_;
  std::map<std::string, ConvLayer> layers_;
  bool lost_ = false;
};

Study small_study() { return plan_study(kBase, {{StudyAxis::batch, {1, 2}}, {StudyAxis::zeros, {0.5, 0.9}}}, {}); }

// Proposed and measured on the fake.
Study measured(FakeGpu& gpu, StudyOptions options = {}, const TimeBudget& budget = TimeBudget(0)) {
  Study study = small_study();
  study.source = Estimate::Source::measured;
  study.device = gpu.device();
  options.jobs = 2;
  propose(study, options, budget, {});
  measure(study, options, budget, gpu.compiler(), gpu, {});
  return study;
}

// The first of a provider at the base.
StudyCandidate& candidate_of(Study& study, std::string_view provider) {
  std::vector<StudyCandidate>& all = study.points[0].candidates;
  const auto found = std::ranges::find_if(all, [&](const auto& entry) { return entry.candidate.provider == provider; });
  REQUIRE(found != all.end());
  return *found;
}

}  // namespace

TEST_CASE("study: the base is a point of every curve, and each layer is one point") {
  const Study study = plan_study(kBase, {{StudyAxis::batch, {8, 2, 2}}, {StudyAxis::zeros, {0.5, 0.95}}},
                                 {{StudyAxis::zeros, StudyAxis::batch}});
  REQUIRE(study.curves.size() == 2);
  CHECK(study.curves[0].axis == StudyAxis::batch);
  CHECK(study.curves[0].values == std::vector<double>{1, 2, 8});
  CHECK(study.curves[1].values == std::vector<double>{0.5, 0.9, 0.95});
  CHECK(study.curves[0].points[0] == 0);
  CHECK(study.curves[1].points[1] == 0);
  CHECK(study.points[0].layer == kBase);
  REQUIRE(study.maps.size() == 1);
  CHECK(study.maps[0].points.size() == 3);
  CHECK(study.maps[0].points[1] == study.curves[0].points);  // zeros are the base's
  CHECK(study.points.size() == 9);
  CHECK(print(study.points[study.maps[0].points[2][2]].layer) == "n=8 c=16 h=8 w=8 k=16 r=3 s=3 zeros=0.95");
  CHECK(study.done() == 0);
}

TEST_CASE("study: what cannot be planned is one error before any work") {
  const auto refusal = [](const AxisValues& axes, const std::vector<MapAxes>& maps = {}) {
    return BURIN_THROWN(usage, plan_study(kBase, axes, maps)).text;
  };
  CHECK(refusal({{StudyAxis::zeros, {0.5}}}, {{StudyAxis::zeros, StudyAxis::batch}}) ==
        "--map names the axis batch, and --batch gives it no values");
  CHECK_THAT(refusal({{StudyAxis::zeros, {0.5}}}, {{StudyAxis::zeros, StudyAxis::zeros}}),
             Contains("two different axes"));
  CHECK_THAT(refusal({{StudyAxis::filter, {99}}}), Contains("--filter 99: "));
  std::vector<double> many;
  for (int i = 1; i <= kMaxStudyPoints + 1; ++i) many.push_back(i);
  CHECK_THAT(refusal({{StudyAxis::batch, many}}), Contains("more than 1000 points"));
}

TEST_CASE("study: the models compare every provider, whether it is the fastest or not") {
  Study study = small_study();
  int told = 0;
  propose(study, {.jobs = 2}, TimeBudget(0), [&](const StudyProgress& state) { told = std::max(told, state.done); });
  CHECK(told == static_cast<int>(study.points.size()));
  CHECK(study.done() == told);
  for (const StudyPoint& point : study.points) {
    std::vector<std::string> names;
    for (const StudyCandidate& entry : point.candidates) {
      names.push_back(entry.algorithm);
      CHECK(entry.predicted_us.value_or(0) > 0);
      CHECK_FALSE(entry.us);
      REQUIRE(entry.memory);
      CHECK(entry.memory->code_bytes > 0);
      CHECK((entry.memory->weight_bytes > 0) == (entry.algorithm != kBakedProvider));
    }
    for (const char* name : {"conv_baked", "conv_dense"}) CHECK(std::ranges::count(names, name) == 1);
    CHECK(ranking(point, study.source).size() == names.size());
  }
  Study again = small_study();
  propose(again, {.jobs = 1}, TimeBudget(0), {});
  for (std::size_t i = 0; i < study.points.size(); ++i) {
    const auto figures = [](const Study& s, std::size_t at) {
      std::vector<std::pair<std::string, double>> all;
      for (const StudyCandidate& c : s.points[at].candidates) all.emplace_back(c.candidate.plan, *c.predicted_us);
      return all;
    };
    CHECK(figures(study, i) == figures(again, i));
  }
}

TEST_CASE("study: only those are asked that are named, and who cannot do it says so") {
  Study study = small_study();
  propose(study, {.providers = {"conv_dense"}, .jobs = 2}, TimeBudget(0), {});
  for (const StudyPoint& point : study.points) {
    REQUIRE(point.candidates.size() == 1);
    CHECK(point.candidates[0].algorithm == "conv_dense");
  }
  Study none = small_study();
  propose(none, {.providers = {"conv_depthwise"}, .jobs = 2}, TimeBudget(0), {});
  CHECK(none.done() == static_cast<int>(none.points.size()));
  CHECK_THAT(none.points[0].fault, Contains("none of the providers that are asked"));
  CHECK(ranking(none.points[0], none.source).empty());
}

TEST_CASE("study: the tensors of halves are those that a network would have") {
  StudyLayer layer = kBase;
  layer.batch = 8;
  CompileOptions options;
  options.precisions.all = Precision::fp16;
  CHECK(PointTask(layer, 1, options).task().reads[0].format() == TensorFormat{ElementType::f16, TensorLayout::n8c8hw});
  layer.batch = 1;
  CHECK(PointTask(layer, 1, options).task().reads[0].format() == TensorFormat());
}

TEST_CASE("study: all that is right is timed in turns, with what it takes of memory") {
  FakeGpu gpu;
  gpu.us = [](const Kernel& kernel) { return kernel.provider == "conv_dense" ? 1.0 : 2.0; };
  const Study study = measured(gpu);
  CHECK(study.stopped.empty());
  CHECK(study.done() == static_cast<int>(study.points.size()));
  REQUIRE(gpu.turns.size() == study.points.size());
  for (const StudyPoint& point : study.points) {
    const std::vector<Ranked> ranked = ranking(point, study.source);
    REQUIRE(ranked.size() >= 2);
    CHECK(point.candidates[ranked[0].candidate].algorithm == "conv_dense");
    CHECK(ranked[0].us == 1);
    CHECK(ranked[1].us == 2);
    for (const StudyCandidate& entry : point.candidates) {
      if (!entry.fault.empty()) continue;
      CHECK(entry.samples == 50);
      REQUIRE(entry.error.has_value());
      CHECK(*entry.error <= 1);
      CHECK(entry.memory.value().workspace_bytes == 4096);
    }
  }
}

TEST_CASE("study: a candidate that is wrong, faults or does not compile has no time, and says why") {
  FakeGpu gpu;
  gpu.is_wrong = [](const Kernel& kernel) { return kernel.provider == "conv_dense"; };
  gpu.faults = [](const Kernel& kernel) { return kernel.provider == "conv_streamed"; };
  const Study study = measured(gpu);
  CHECK(study.stopped.empty());
  int wrong = 0, faulty = 0;
  for (const StudyPoint& point : study.points) {
    CHECK(point.done);
    for (const StudyCandidate& entry : point.candidates) {
      const bool is_wrong = entry.fault.starts_with("wrong: image 0"),
                 faults = entry.fault == "cuGraphLaunch: the fake faults";
      if (is_wrong) CHECK(entry.algorithm == "conv_dense");
      if (faults) CHECK(entry.algorithm == "conv_streamed");
      if (is_wrong || faults) CHECK_FALSE(entry.us);
      wrong += is_wrong;
      faulty += faults;
    }
    for (const Ranked& ranked : ranking(point, study.source))
      CHECK(point.candidates[ranked.candidate].algorithm != "conv_dense");
  }
  CHECK(wrong > 0);
  INFO("candidates that fault: " << faulty);

  FakeGpu other;
  Study broken = small_study();
  broken.source = Estimate::Source::measured;
  broken.device = other.device();
  propose(broken, {.jobs = 2}, TimeBudget(0), {});
  measure(broken, {.jobs = 2}, TimeBudget(0),
          [](const Task&, const Candidate&) -> Package { fail(ErrorKind::unsupported, "ptxas: no\nlog"); }, other, {});
  CHECK(broken.done() == static_cast<int>(broken.points.size()));
  CHECK(broken.points[0].candidates[0].fault == "ptxas: no");
  CHECK(other.turns.empty());
}

TEST_CASE("study: what is predicted to be far behind is left out, and says so") {
  Study study = small_study();
  study.source = Estimate::Source::measured;
  propose(study, {.jobs = 2}, TimeBudget(0), {});
  StudyCandidate &slow = candidate_of(study, kBakedProvider), &dense = candidate_of(study, "conv_dense");
  slow.predicted_us = 1000;
  dense.predicted_us = 2000;  // it is measured all the same: its code is made soon
  FakeGpu gpu;
  measure(study, {.jobs = 2}, TimeBudget(0), gpu.compiler(), gpu, {});
  CHECK_THAT(slow.fault, Contains("not measured: predicted to take") && Contains("times the best estimate"));
  CHECK_FALSE(slow.us);
  CHECK(dense.us);
  CHECK(dense.fault.empty());
}

TEST_CASE("study: when the time is over it keeps what it has and says what is missing") {
  FakeGpu gpu;
  double clock = 0;
  gpu.us = [&](const Kernel& kernel) {
    clock = 100;  // the first point that is measured takes all of it
    return kernel.predicted_us;
  };
  const Study study = measured(gpu, {}, TimeBudget(10, [&] { return clock; }));
  CHECK(study.points.size() == 3);
  CHECK(study.done() == 2);  // as many were begun while there was time: one thread compiles
  CHECK(study.points[0].done);
  CHECK(gpu.turns.size() == 2);
  CHECK(study.stopped == "the time that it was given was over");

  clock = 0;
  FakeGpu never;
  const Study nothing = measured(never, {}, TimeBudget(10, [&] { return clock += 10; }));
  CHECK(nothing.done() == 0);
  CHECK(nothing.stopped == "the time that it was given was over");
}

TEST_CASE("study: what an earlier run measured is not measured again, and a run that was stopped goes on") {
  const ScratchFolder folder;
  const KernelCache cache(folder / "cache", std::int64_t{1} << 30);
  StudyOptions options;
  options.compile.cache = &cache;
  double clock = 0;
  FakeGpu first;
  first.is_wrong = [](const Kernel& kernel) { return kernel.provider == "conv_dense"; };
  first.us = [&](const Kernel& kernel) {
    clock = 100;
    return kernel.predicted_us;
  };
  const Study stopped = measured(first, options, TimeBudget(10, [&] { return clock; }));
  REQUIRE(stopped.done() == 2);
  CHECK(stopped.known() == 0);

  FakeGpu second;
  second.is_wrong = first.is_wrong;
  second.us = [](const Kernel& kernel) { return 2 * kernel.predicted_us; };
  const Study whole = measured(second, options);
  CHECK(whole.stopped.empty());
  CHECK(whole.done() == 3);
  CHECK(whole.known() == 2);
  CHECK(second.turns.size() == 1);
  for (std::size_t i = 0; i < whole.points.size(); ++i) {
    const StudyPoint &point = whole.points[i], &before = stopped.points[i];
    CHECK(point.known == before.done);
    for (std::size_t k = 0; k < point.candidates.size(); ++k) {
      const StudyCandidate& entry = point.candidates[k];
      const double factor = point.known ? 1 : 2;
      CHECK(entry.us.has_value() == entry.fault.empty());
      if (entry.us) CHECK(*entry.us == Approx(factor * *entry.predicted_us));
      if (entry.us) CHECK(entry.memory.value().code_bytes >= 0);
      if (entry.algorithm == "conv_dense") CHECK_THAT(entry.fault, Contains("wrong: image 0"));
      if (!before.done) continue;
      CHECK(entry.fault == before.candidates[k].fault);
      CHECK(entry.samples == before.candidates[k].samples);
      CHECK(entry.error == before.candidates[k].error);
      if (entry.us) CHECK(entry.memory->total() == before.candidates[k].memory->total());
    }
  }

  FakeGpu third;
  CHECK(measured(third, options).known() == 3);
  CHECK(third.turns.empty());
  options.anew = true;
  FakeGpu again;
  CHECK(measured(again, options).known() == 0);
  CHECK(again.turns.size() == 3);
}

TEST_CASE("study: a fault of the device is tried again, unless it ended the run") {
  const ScratchFolder folder;
  const KernelCache cache(folder / "cache", std::int64_t{1} << 30);
  StudyOptions options;
  options.compile.cache = &cache;
  FakeGpu faulty;
  faulty.faults = [](const Kernel& kernel) { return kernel.provider == "conv_dense"; };
  CHECK(measured(faulty, options).done() == 3);
  FakeGpu again;
  const Study study = measured(again, options);
  CHECK(study.known() == 0);
  CHECK(again.turns.size() == 3);
}

TEST_CASE("study: a device that is lost ends it, and what was measured stays") {
  FakeGpu gpu;
  gpu.a_fault_ends_all = true;
  gpu.faults = [&](const Kernel&) { return gpu.turns.size() == 2; };
  const Study study = measured(gpu);
  CHECK(study.done() == 1);
  CHECK_THAT(study.stopped, Contains("the device cannot be used any more after conv_") && Contains("the fake faults"));
}
