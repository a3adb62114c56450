// Plans by measurement: for each layer and batch size a handful of plans is compiled, checked against the float64
// reference and timed on a GPU; the fastest is taken, and the evidence goes into the package.
//
// Stands before compile_network(), which takes the plans that come out of it. docs/pipeline.md tells how it goes.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "compiler/options.h"
#include "compiler/providers/conv_baked/plan/planner.h"
#include "compiler/tune/measurer.h"
#include "ir/network.h"

namespace burin {

struct TuneOptions {
  PlanRequest request;  // of every candidate, at each of `batches`; the measurer's architecture is one of its `archs`
  std::vector<int> batches = {1};
  int plans = 12;  // candidates at first, and steps from the best at most; 1 to kMaxTuningPlans
  int jobs = 0;    // threads; 0: as many as there are processors
};

struct TuneProgress {
  int kernels_done = 0, kernels = 0;
  std::string layer;  // that was worked on
  int batch = 1;
  int plans_done = 0, plans = 0;  // of it; more may come
  double best_us = 0;             // cold; 0: none is right so far
};

// A package of one kernel, ready for the measurer; called from several threads. Usually compile_candidate().
using CandidateCompiler =
    std::function<Package(const ConvLayer& layer, const SparsePattern& pattern, const BakedPlan& plan)>;

// One plan for each layer and batch size, in the network's order. `progress` may be empty. A candidate that cannot be
// compiled or launched, or computes something else than the reference, is recorded with its fault and never chosen.
// Throws Error where no candidate of a kernel is left, where a layer cannot be planned, and Error(device) where a
// candidate's fault leaves the device unusable.
std::vector<TunedKernel> tune_network(const Network& network, const TuneOptions& options,
                                      const CandidateCompiler& compile, Measurer& measurer,
                                      const std::function<void(const TuneProgress&)>& progress);

}  // namespace burin
