// compile --tune: the tuner on a GPU of this machine.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "compiler/compile.h"
#include "compiler/tune/tune.h"

namespace burin {

inline constexpr int kDefaultTuningPlans = 12;
inline constexpr int kDefaultTuningMinutes = 5;

struct TunedNetwork {
  std::vector<TunedKernel> kernels;
  std::vector<std::string> notes;  // candidates that compute wrong results, and kernels that were not measured
};

// Kernels for all convolutions of `network` and options.batches, as many as `budget_s` seconds suffice for. Throws
// Error(device) without a GPU of one of options.archs, Error(unsupported) without an assembler. `progress` may be
// empty.
TunedNetwork tune_on_gpu(const Network& network, const CompileOptions& options, int plans, double budget_s,
                         const std::function<void(const TuneProgress&)>& progress);

}  // namespace burin
