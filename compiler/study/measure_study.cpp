#include <algorithm>
#include <memory>
#include <optional>
#include <set>

#include "compiler/choose/choose.h"
#include "compiler/study/point_task.h"
#include "compiler/study/study.h"
#include "compiler/tune/compile_pool.h"
#include "compiler/tune/expected_output.h"
#include "compiler/tune/measurements.h"
#include "ir/error.h"
#include "ir/package/device_memory.h"
#include "ir/sparse_pattern.h"

namespace burin {
namespace {

// A point whose candidates are being compiled, or wait for those that are.
struct OpenPoint {
  PointTask made;
  std::vector<std::optional<Package>> packages;  // of each candidate; nothing: it is not compiled yet, or cannot be
  std::size_t left = 0;                          // candidates that are not compiled yet
  Measurements kept;

  OpenPoint(const StudyPoint& point, std::uint64_t seed, const StudyOptions& options, const TuningDevice& device)
      : made(point.layer, seed, options.compile),
        packages(point.candidates.size()),
        kept(options.compile.cache, made.task(), device, options.anew) {}
};

CandidateMemory memory_with(const KernelMemory& memory, std::int64_t workspace_bytes) {
  return {std::max<std::int64_t>(0, memory.code_bytes), memory.weight_bytes, memory.library_bytes, workspace_bytes};
}

// Whether an earlier run has compared all that is to be compared now: times of other turns are no times to compare.
bool take_from(const Measurements& kept, StudyPoint& point) {
  std::vector<const Measurements::Entry*> entries;
  for (const StudyCandidate& candidate : point.candidates) {
    const Measurements::Entry*& entry = entries.emplace_back();
    if (!candidate.fault.empty()) continue;
    entry = kept.find(candidate.candidate);
    if (entry == nullptr || (!entry->fault && (entry->turns_us <= 0 || !entry->memory))) return false;
  }
  for (std::size_t i = 0; i < entries.size(); ++i) {
    StudyCandidate& candidate = point.candidates[i];
    if (entries[i] == nullptr) continue;
    const Measurements::Entry& entry = *entries[i];
    if (entry.fault) {
      candidate.fault = recorded_fault(*entry.fault);
      continue;
    }
    candidate.us = entry.turns_us;
    candidate.samples = entry.time.samples;
    candidate.error = entry.error;
    candidate.memory = memory_with(*entry.memory, entry.time.workspace_bytes);
  }
  return true;
}

// Says of what is predicted to be far behind that it is not measured. The best of each provider is all the same, so
// that its curve goes on, unless each nonzero is an instruction: that takes long to compile.
void leave_out_the_slow(StudyPoint& point) {
  std::set<std::string> seen;  // providers
  std::optional<double> best;
  for (const StudyCandidate& candidate : point.candidates) {
    if (candidate.predicted_us) best = std::min(best.value_or(*candidate.predicted_us), *candidate.predicted_us);
  }
  for (StudyCandidate& candidate : point.candidates) {
    const bool is_first = seen.insert(candidate.candidate.provider).second;
    if (!candidate.predicted_us || *candidate.predicted_us <= kFarBehind * *best) continue;
    if (is_first && !find_provider(candidate.candidate.provider)->bakes_weights()) continue;
    candidate.fault =
        fmt::format("not measured: predicted to take {:.1f} times the best estimate", *candidate.predicted_us / *best);
  }
}

class StudyRunner {
 public:
  StudyRunner(Study& study, const StudyOptions& options, const TimeBudget& budget, const CandidateCompiler& compile,
              Measurer& measurer, const std::function<void(const StudyProgress&)>& progress)
      : study_(study),
        options_(options),
        budget_(budget),
        compile_(compile),
        measurer_(measurer),
        progress_(progress),
        open_(study.points.size()),
        at_once_(compile_threads(options.jobs) + 1),
        pool_(compile_threads(options.jobs)) {}

  void run() {
    start_more();
    while (opened_ > 0 && study_.stopped.empty()) {
      take(pool_.next());
      start_more();
    }
    if (study_.stopped.empty() && study_.done() < static_cast<int>(study_.points.size())) {
      study_.stopped = "the time that it was given was over";
    }
  }

 private:
  // As many points as keep the compiling threads busy while one is measured.
  void start_more() {
    while (opened_ < at_once_ && next_ < study_.points.size() && budget_.is_time_left()) {
      const std::size_t number = next_++;
      StudyPoint& point = study_.points[number];
      if (point.done || point.candidates.empty()) continue;
      leave_out_the_slow(point);
      auto made = std::make_unique<OpenPoint>(point, study_.seed, options_, study_.device);
      if (take_from(made->kept, point)) {
        point.known = true;
        finish(point);
        continue;
      }
      open_[number] = std::move(made);
      OpenPoint& open = *open_[number];
      ++opened_;
      for (std::size_t i = 0; i < point.candidates.size(); ++i) {
        if (!point.candidates[i].fault.empty()) continue;
        ++open.left;
        pool_.add({number, i}, [this, &open, candidate = point.candidates[i].candidate] {
          return compile_(open.made.task(), candidate);
        });
      }
    }
  }

  void take(CompilePool::Result compiled) {
    const auto [number, i] = compiled.key;
    OpenPoint& open = *open_[number];
    if (compiled.fault) {
      StudyCandidate& candidate = study_.points[number].candidates[i];
      fail_candidate(candidate, *compiled.fault);
      open.kept.store_fault(candidate.candidate, *compiled.fault, /*is_lost=*/false);
    } else {
      open.packages[i] = std::move(compiled.package);
    }
    if (--open.left > 0) return;
    compare(study_.points[number], open);
    open_[number].reset();
    --opened_;
  }

  static void fail_candidate(StudyCandidate& candidate, const Error& fault) { candidate.fault = recorded_fault(fault); }

  // The candidates of a point that are right are timed in turns.
  void compare(StudyPoint& point, OpenPoint& open) {
    const ConvLayer& layer = open.made.layer();
    const Task& task = open.made.task();
    ExpectedOutput expected(layer, analyse(layer), task.batch, task.precision, task.factors, task.zeros);
    std::vector<const Package*> packages;
    std::vector<StudyCandidate*> right;
    for (std::size_t i = 0; i < point.candidates.size(); ++i) {
      if (!open.packages[i]) continue;
      StudyCandidate& candidate = point.candidates[i];
      try {
        candidate.error = checked_error(measurer_, *open.packages[i], task.batch, expected);
        packages.push_back(&*open.packages[i]);
        right.push_back(&candidate);
      } catch (const Error& error) {
        if (fails_with(candidate, error, open.kept)) return;
      }
    }
    const std::vector<Timing> timings =
        packages.empty() ? std::vector<Timing>() : measurer_.time_in_turns(packages, task.batch, expected.input());
    std::vector<std::pair<Candidate, LaunchTime>> turns;
    for (std::size_t i = 0; i < timings.size(); ++i) {
      if (timings[i].fault) {
        if (fails_with(*right[i], *timings[i].fault, open.kept)) return;
        continue;
      }
      record(*right[i], *packages[i], timings[i].time, open.kept);
      turns.emplace_back(right[i]->candidate, timings[i].time);
    }
    open.kept.store_turns(turns);
    finish(point);
  }

  void finish(StudyPoint& point) const {
    point.done = true;
    if (progress_) progress_({study_.done(), static_cast<int>(study_.points.size()), print(point.layer)});
  }

  void record(StudyCandidate& candidate, const Package& package, const LaunchTime& time, Measurements& kept) const {
    candidate.us = time.us;
    candidate.samples = time.samples;
    const KernelMemory memory = memory_of(package.manifest.kernels.front(), study_.device.arch);
    candidate.memory = memory_with(memory, time.workspace_bytes);
    const bool is_sound = !package.manifest.kernels.front().call;  // a study looks at numbers alone
    kept.store(candidate.candidate, time, candidate.error, is_sound, memory);
  }

  // Whether the candidate has left the device unusable.
  bool fails_with(StudyCandidate& candidate, const Error& fault, Measurements& kept) {
    fail_candidate(candidate, fault);
    const bool is_lost = !measurer_.usable();
    kept.store_fault(candidate.candidate, fault, is_lost);
    if (!is_lost) return false;
    study_.stopped = fmt::format("the device cannot be used any more after {} {}: {}", candidate.algorithm,
                                 candidate.plan, candidate.fault);
    return true;
  }

  Study& study_;
  const StudyOptions& options_;
  const TimeBudget& budget_;
  const CandidateCompiler& compile_;
  Measurer& measurer_;
  const std::function<void(const StudyProgress&)>& progress_;
  std::vector<std::unique_ptr<OpenPoint>> open_;  // of each point
  const int at_once_;
  std::size_t next_ = 0;
  int opened_ = 0;
  CompilePool pool_;  // goes first: what it compiles refers to the rest
};

}  // namespace

void measure(Study& study, const StudyOptions& options, const TimeBudget& budget, const CandidateCompiler& compile,
             Measurer& measurer, const std::function<void(const StudyProgress&)>& progress) {
  StudyRunner(study, options, budget, compile, measurer, progress).run();
}

}  // namespace burin
