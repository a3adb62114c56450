// The search for the fastest plan of one kernel: which plans to try next, and what came of those that were tried.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/options.h"
#include "compiler/providers/conv_baked/plan/planner.h"
#include "compiler/tune/measurer.h"
#include "ir/error.h"
#include "ir/sparse_pattern.h"

namespace burin {

class TuningTask {
 public:
  // `plans`: how many to try at first, and how many steps from the best of them at most. What is passed by reference
  // must outlive the task.
  TuningTask(const ConvLayer& layer, const SparsePattern& pattern, PlanRequest request, int plans,
             const TuningDevice& device);

  // The indices of the plans to try next; all earlier ones must have an outcome. First the planner's own and plans that
  // are unlike it, then the neighbours of the best as long as that improves. Empty: done.
  std::vector<std::size_t> next_round();

  const ConvLayer& layer() const { return layer_; }
  const SparsePattern& pattern() const { return pattern_; }
  int batch() const { return request_.batch; }
  Precision precision() const { return request_.precision; }
  std::string name() const;  // "layer 'conv1', batch 32"
  const BakedPlan& plan(std::size_t candidate) const { return plans_[candidate]; }

  void measured(std::size_t candidate, const LaunchTimes& times, double error);
  void failed(std::size_t candidate, const Error& fault);

  int tried() const { return tried_; }
  int known() const { return static_cast<int>(plans_.size()); }
  bool round_is_over() const { return tried_ == known(); }
  double best_us() const;  // 0: none yet

  // The fastest of the right ones, cold. Throws Error where there is none, of the kind of the planner's own plan's
  // fault.
  TunedKernel result() const;

 private:
  std::vector<BakedPlan> neighbours() const;
  const TuningCandidate& outcome(std::size_t candidate) const { return evidence_.candidates[candidate]; }

  const ConvLayer& layer_;
  const SparsePattern& pattern_;
  const PlanRequest request_;
  const int most_first_;
  int steps_left_;
  std::vector<BakedPlan> plans_;  // one for each candidate of the evidence
  TuningRecord evidence_;
  std::optional<std::size_t> best_;
  double best_of_last_round_ = 0;
  int tried_ = 0;
  std::optional<Error> first_fault_;  // of the lowest candidate that failed
  std::size_t first_fault_of_ = 0;
};

}  // namespace burin
