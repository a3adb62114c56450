// Kernels by measurement: for each convolution and batch size candidates of every provider are compiled, checked
// against the float64 reference and timed on a GPU; the fastest is taken, and the evidence goes into the package.
//
// Stands before compile_network(), which takes the candidates that come out of it. docs/pipeline.md tells how it goes.
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "compiler/options.h"
#include "compiler/program_graphs.h"
#include "compiler/task.h"
#include "compiler/tune/measurer.h"
#include "compiler/tune/time_budget.h"
#include "ir/package/package.h"

namespace burin {

struct TuneOptions {
  int plans = 12;          // candidates at first, and steps from the best at most; 1 to kMaxTuningPlans
  TimeBudget budget = {};  // of all that tuning does
  int jobs = 0;            // threads; 0: as many as there are processors
  std::vector<std::string> providers = {};  // whose candidates are measured, beside the models' choice; empty: all
  bool anew = false;                        // what the options' cache has of measurements is measured again
  // When all is measured, convolutions are measured in other formats, too (tasks_in_other_formats()).
  bool other_formats = false;
  bool may_fail = false;  // a task without a candidate that can be used is noted, and no error
  // Is called with what was compiled of those that are chosen, and of their rivals. May be empty.
  std::function<void(const Task& task, const Candidate& candidate, const Package& compiled)> keep = {};
};

struct TuneProgress {
  int kernels_done = 0, kernels = 0;
  std::string layer;  // that was worked on
  int batch = 1;
  int plans_done = 0, plans = 0;  // of it; more may come
  double best_us = 0;             // cold; 0: none is right so far
};

struct Tuned {
  std::vector<TunedKernel> kernels;
  int measured = 0, from_cache = 0;  // candidates that were timed, and those whose times the cache had
  bool was_time_up = false;
  int tasks = 0, left_to_models = 0;  // of the formats that the graphs have
  std::vector<std::string> notes;     // kernels of which no candidate can be used
};

// A package of one kernel, ready for the measurer; called from several threads. Usually compile_candidate().
using CandidateCompiler = std::function<Package(const Task& task, const Candidate& candidate)>;

// What of a network is tuned: each layer in turn, for each batch size.
struct TuningTasks {
  std::deque<Network> networks;  // that the tasks refer to
  std::vector<Task> tasks;
};
TuningTasks tuning_tasks(const ProgramGraphs& graphs, const CompileOptions& options);

// This makes tasks of the graphs' convolutions in the formats that they may have beside those in which `tuning`, which
// was made of the same graphs, has them. The graphs must outlive the tasks. `measures`: whether a provider's candidates
// are measured.
std::vector<Task> tasks_in_other_formats(const ProgramGraphs& graphs, const TuningTasks& tuning,
                                         const CompileOptions& options,
                                         const std::function<bool(const Provider& provider)>& measures);

// The fastest kernel for each task, in their order; those that are estimated to take most of the time are measured
// first, and those that the time did not suffice for are left out, as are those that none of the providers that are
// asked can make. The options' cache keeps what is measured, and what it has is taken from there. The measurer's
// architecture is one of `options.archs`. `progress` may be empty. A candidate that cannot be compiled or launched, or
// computes something else than the reference, is recorded with its fault and never chosen. Throws Error where no
// candidate of a kernel is left, where nobody has one, and Error(device) where a candidate's fault leaves the device
// unusable.
Tuned tune_tasks(const std::vector<Task>& tasks, const CompileOptions& options, const TuneOptions& tune_options,
                 const CandidateCompiler& compile, Measurer& measurer,
                 const std::function<void(const TuneProgress&)>& progress);

// The same for all layers and batch sizes of the graphs, and behind them, where TuneOptions ask for it and time is
// left, for convolutions in other formats. It leaves some of the budget to compile_tuned().
Tuned tune_graphs(const ProgramGraphs& graphs, const CompileOptions& options, const TuneOptions& tune_options,
                  const CandidateCompiler& compile, Measurer& measurer,
                  const std::function<void(const TuneProgress&)>& progress);

}  // namespace burin
