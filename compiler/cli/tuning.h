// compile --tune: the tuner on a GPU of this machine, with its progress.
#pragma once

#include <vector>

#include "compiler/compile.h"

namespace burin {

inline constexpr int kDefaultTuningPlans = 12;

inline constexpr int kDefaultTuningMinutes = 5;

// Kernels for all convolutions of `network` and options.batches, as many as `budget_s` seconds suffice for. Throws
// Error(device) without a GPU of one of options.archs, Error(unsupported) without an assembler. Candidates that compute
// wrong results, and kernels that were not measured, become notes.
std::vector<TunedKernel> tune_on_gpu(const Network& network, const CompileOptions& options, int plans, double budget_s);

}  // namespace burin
