// What was measured of one task's candidates before. The cache of kernels keeps it, so that a run that was stopped, or
// whose time was up, loses nothing, and the next one goes on from there. Each task and device has a file of its own, as
// JSON that a person can read; whoever finds one damaged measures again.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compiler/kernel_cache.h"
#include "compiler/task.h"
#include "compiler/tune/measurer.h"
#include "ir/error.h"
#include "ir/package/device_memory.h"

namespace burin {

class Measurements {
 public:
  struct Entry {
    Candidate candidate;          // provider and plan
    std::string in_short;         // the plan, for a person who reads
    std::string library;          // that it calls, with its version; empty: none
    LaunchTime time;              // when it was measured by itself
    std::optional<double> error;  // as a share of the tolerance; nothing: nobody compared it
    bool is_sound = true;         // it was compared, and, where it calls a library, on NaN and infinities, too
    double turns_us = 0;  // when it took turns with the others that have such a time, after the search; 0: it did not
    std::optional<Error> fault;  // instead of figures: it computes something else, cannot be launched, or ended a run
    std::optional<KernelMemory> memory;  // what a study noted
  };

  // Such an object keeps nothing and knows nothing.
  Measurements() = default;
  // `cache` must outlive it; where it is null, or keeps nothing on disk, nothing is kept. `anew`: what is there is not
  // looked at; each entry is replaced when its candidate is measured.
  Measurements(const KernelCache* cache, const Task& task, const TuningDevice& device, bool anew);

  bool has_entries() const { return !anew_ && !entries_.empty(); }
  // The result is null where the candidate was not measured.
  const Entry* find(const Candidate& candidate) const;
  void store(const Candidate& candidate, const LaunchTime& time, const std::optional<double>& error, bool is_sound,
             const std::optional<KernelMemory>& memory = {});
  // `is_lost`: the device cannot be used since. Another fault of a device may be another's work on it, and is not kept.
  void store_fault(const Candidate& candidate, const Error& fault, bool is_lost);
  // Times of candidates that took turns; what others had of earlier turns is forgotten.
  void store_turns(const std::vector<std::pair<Candidate, LaunchTime>>& times);

 private:
  struct Kept {
    Entry entry;
    bool is_of_this_run = false;
  };
  std::size_t index_of(const Candidate& candidate) const;  // as many as there are entries: it has none
  std::string library_of(const Candidate& candidate) const;
  void store(Entry entry);
  void write() const;

  const KernelCache* cache_ = nullptr;
  std::vector<LibraryVersion> libraries_;  // that are there
  std::string key_;
  std::string about_;  // what a person reads at the head of the file
  bool anew_ = false;
  std::vector<Kept> entries_;
};

}  // namespace burin
