// The search for the fastest kernel of one task: which candidates to try next, and what came of those that were tried.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "compiler/options.h"
#include "compiler/task.h"
#include "compiler/tune/measurer.h"
#include "ir/error.h"

namespace burin {

// The fault of a models' choice that there was no time to measure.
inline constexpr const char* kNotMeasured = "the time was up";

class TuningTask {
 public:
  // `plans`: how many to try at first, and how many steps from the best of them at most. `providers`: those that are
  // asked, beside the models' choice; empty: all. Task and options must outlive this.
  TuningTask(const Task& task, const CompileOptions& options, int plans, const std::vector<std::string>& providers,
             const TuningDevice& device);

  // The indices of the candidates to try next; all earlier ones must have an outcome. First come those that the models
  // promise most of, their choice before all others, of each provider at least one unless it is far behind. Those that
  // take long to make wait until the others are measured, and are tried as far as they promise more. Then the
  // neighbours of the best follow as long as that improves. Empty: done.
  std::vector<std::size_t> next_round();

  const Task& task() const { return task_; }
  std::string name() const;  // "layer 'conv1', batch 32"
  const Candidate& candidate(std::size_t index) const { return candidates_[index]; }
  std::string describe(std::size_t index) const;  // "plan staging=bulk,..."

  // Without an error it was not compared with the reference on all inputs that are asked for, and is never chosen.
  void measured(std::size_t candidate, const LaunchTime& time, const std::optional<double>& error);
  void failed(std::size_t candidate, const Error& fault);
  // There was no time to measure it: it is no part of the evidence, but for the models' choice.
  void skipped(std::size_t candidate);

  // The few right ones that take hardly more than the best, which is the first of them: times of other moments cannot
  // tell which of them is the fastest.
  std::vector<std::size_t> contenders() const;
  bool may_contend(std::size_t candidate) const;
  // Whether a network may get it, by what is known so far.
  bool may_be_taken(std::size_t candidate) const;
  // Whether one that takes so long may become one that a network may get, by what is known so far. The models' choice
  // may in any case.
  bool may_matter(std::size_t candidate, double us) const;
  // These are the times that contenders had when they took turns: the fastest of them is the best now.
  void took_turns(const std::vector<std::pair<std::size_t, double>>& times_us);
  // Measured before, it had this fault when it took turns.
  void ruled_out(std::size_t candidate, const Error& fault);

  int tried() const { return tried_; }
  int proposed() const { return static_cast<int>(candidates_.size()); }
  bool round_is_over() const { return tried_ == proposed(); }
  bool has_best() const { return best_.has_value(); }
  bool has_fault() const { return first_fault_.has_value(); }  // one of those that were tried
  // Whether there was no time for some of the candidates.
  bool was_cut_short() const { return !skipped_.empty(); }
  double best_us() const;  // 0: none yet
  std::size_t best() const { return *best_; }
  std::vector<std::size_t> rivals() const;  // TunedKernel::rivals

  // The fastest of the right ones, cold. Throws Error where there is none, of the kind of the first fault.
  TunedKernel result() const;

 private:
  std::vector<Candidate> first() const;
  std::vector<Candidate> without_late(std::vector<Candidate> candidates);
  std::vector<Candidate> promising_late();
  std::optional<double> model_is_off_by(const std::string& provider) const;
  std::vector<Candidate> neighbours() const;
  bool is_asked(const Candidate& candidate) const;
  bool has_time(std::size_t candidate) const;
  bool is_right(std::size_t candidate) const;  // it has a time, and was compared
  Candidate as_measured(std::size_t candidate) const;
  void find_best();
  // Where times are equal, the earlier plan wins, whatever the order in which they were measured.
  std::pair<double, std::size_t> rank(std::size_t candidate) const { return {outcome(candidate).us, candidate}; }
  const TuningCandidate& outcome(std::size_t candidate) const { return evidence_.candidates[candidate]; }

  const Task& task_;
  const CompileOptions& options_;
  const int most_first_;
  const std::vector<std::string> providers_;
  const TuningDevice device_;
  int steps_left_;
  std::vector<Candidate> late_;        // of the first, that take long to make
  std::vector<Candidate> dropped_;     // those that were late, and promise too little
  std::vector<Candidate> candidates_;  // one for each of the evidence
  TuningRecord evidence_;
  std::optional<std::size_t> best_;
  double best_of_last_round_ = 0;
  int tried_ = 0;
  std::set<std::size_t> skipped_;
  std::optional<Error> first_fault_;  // of the lowest candidate that failed
  std::size_t first_fault_of_ = 0;
};

}  // namespace burin
