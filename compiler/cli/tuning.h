// compile --tune: the tuner on a GPU of this machine, with its progress.
#pragma once

#include <vector>

#include "compiler/compile.h"

namespace burin {

inline constexpr int kDefaultTuningPlans = 12;

// Plans for all of `network` and options.batches. Throws Error(device) without a GPU of one of options.archs,
// Error(unsupported) without an assembler. Candidates that compute wrong results become notes.
std::vector<TunedKernel> tune_on_gpu(const Network& network, const CompileOptions& options, int plans);

}  // namespace burin
