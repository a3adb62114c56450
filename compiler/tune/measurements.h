// What was measured of one task's candidates before, kept in the cache of kernels: a run that was stopped, or whose
// time was up, loses nothing, and the next one goes on from it. One file for each task and device, as JSON that a
// person can read; whoever finds one damaged measures again.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compiler/kernel_cache.h"
#include "compiler/task.h"
#include "compiler/tune/measurer.h"

namespace burin {

class Measurements {
 public:
  struct Entry {
    Candidate candidate;   // provider and plan
    std::string in_short;  // the plan, for a person who reads
    LaunchTime time;
    double error = 0;       // as a share of the tolerance
    bool in_turns = false;  // timed in turns with the others that have it, once the search was over
  };

  // Keeps none.
  Measurements() = default;
  // `cache` must outlive it; null, or one that keeps nothing on disk: none are kept. `anew`: those that are there are
  // not looked at, and are replaced.
  Measurements(const KernelCache* cache, const Task& task, const TuningDevice& device, bool anew);

  bool empty() const { return entries_.empty(); }
  // Null: it was not measured.
  const Entry* find(const Candidate& candidate) const;
  void store(const Candidate& candidate, const LaunchTime& time, double error);
  // Times of candidates that are there already, which took turns.
  void store_turns(const std::vector<std::pair<Candidate, LaunchTime>>& times);

 private:
  void write() const;
  Entry* find_own(const Candidate& candidate);

  const KernelCache* cache_ = nullptr;
  std::string key_;
  std::string about_;  // what a person reads at the head of the file
  std::vector<Entry> entries_;
};

}  // namespace burin
