// The search for the fastest kernel of one task: which candidates to try next, and what came of those that were tried.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/options.h"
#include "compiler/task.h"
#include "compiler/tune/measurer.h"
#include "ir/error.h"

namespace burin {

class TuningTask {
 public:
  // `plans`: how many to try at first, and how many steps from the best of them at most. Task and options must outlive
  // this.
  TuningTask(const Task& task, const CompileOptions& options, int plans, const TuningDevice& device);

  // The indices of the candidates to try next; all earlier ones must have an outcome. First those that the models
  // promise most of, of each provider at least one unless it is far behind, then the neighbours of the best as long as
  // that improves. Empty: done.
  std::vector<std::size_t> next_round();

  const Task& task() const { return task_; }
  std::string name() const;  // "layer 'conv1', batch 32"
  const Candidate& candidate(std::size_t index) const { return candidates_[index]; }
  std::string describe(std::size_t index) const;  // "plan staging=bulk,..."

  void measured(std::size_t candidate, const LaunchTime& time, double error);
  void failed(std::size_t candidate, const Error& fault);

  int tried() const { return tried_; }
  int known() const { return static_cast<int>(candidates_.size()); }
  bool round_is_over() const { return tried_ == known(); }
  double best_us() const;  // 0: none yet

  // The fastest of the right ones, cold. Throws Error where there is none, of the kind of the first fault.
  TunedKernel result() const;

 private:
  std::vector<Candidate> first() const;
  std::vector<Candidate> neighbours() const;
  const TuningCandidate& outcome(std::size_t candidate) const { return evidence_.candidates[candidate]; }

  const Task& task_;
  const CompileOptions& options_;
  const int most_first_;
  int steps_left_;
  std::vector<Candidate> candidates_;  // one for each of the evidence
  TuningRecord evidence_;
  std::optional<std::size_t> best_;
  double best_of_last_round_ = 0;
  int tried_ = 0;
  std::optional<Error> first_fault_;  // of the lowest candidate that failed
  std::size_t first_fault_of_ = 0;
};

}  // namespace burin
