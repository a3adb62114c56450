// The ways in which a step of a package could have been done, as the package keeps them: `inspect --why` and `report`.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "ir/package/package.h"

namespace burin {

struct StepCandidate {
  std::string provider;
  std::string plan = {};                                      // in short; empty: the package does not keep it
  std::optional<double> predicted_us = {}, measured_us = {};  // of a launch; nothing: nobody has said
  std::string fault = {};  // why it could not be measured; empty: nothing is known against it
  bool is_dense = false;   // Provider::is_dense()
  // What it is compared by.
  std::optional<double> us() const { return measured_us ? measured_us : predicted_us; }
};

// The chosen one first, then by their times, then those that have none.
struct StepCandidates {
  std::vector<StepCandidate> all;
  bool tuned = false;  // they are those of the kernel's TuningRecord

  const StepCandidate& chosen() const { return all.front(); }
  // The fastest of another provider than the chosen one's; null: there is none with a time.
  const StepCandidate* runner_up() const;
  // The fastest of those whose kernels gain nothing by zeros of weights; may be the chosen one. Null: the same.
  const StepCandidate* best_dense() const;
};

// Whether what was measured for the kernel is of the step's own batch. Of a kernel that programs for several batch
// sizes launch it is of one of them, and of the others what was compared stands in their steps.
bool is_tuned_for(const Step& step, const Kernel& kernel, int batch);

// The candidates of a step of a program for so many images: those that tuning has measured for it, else those that its
// choice has compared.
StepCandidates candidates_of(const Step& step, const Kernel& kernel, int batch);

// Those that were compared, the chosen one first, whose plan in short is `plan`; there is at least one.
StepCandidates candidates_of(const std::vector<KernelOption>& options, const std::string& plan);

// How many times the chosen one's time a candidate takes. Only times of one source are compared: both measured, else
// both predicted.
struct TimeRatio {
  double ratio = 0;
  bool measured = false;
};
std::optional<TimeRatio> ratio_to(const StepCandidate& chosen, const StepCandidate& candidate);

// "chosen", "1.40 times the chosen one's time by the models", "left out: its result is wrong".
std::string verdict_on(const StepCandidates& candidates, std::size_t index);

nlohmann::ordered_json to_json(const StepCandidates& candidates);

// The candidates of every step whose name matches, each with its figures and why it was not taken. Throws Error(usage)
// where no step matches.
std::string print_why(const Package& package, const std::string& step_glob, const std::optional<std::string>& arch);
nlohmann::ordered_json why_json(const Package& package, const std::string& step_glob,
                                const std::optional<std::string>& arch);

}  // namespace burin
