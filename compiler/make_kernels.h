// All kernels of a compilation, made by several threads or found in the cache.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "compiler/kernel_job.h"
#include "compiler/make_kernel.h"
#include "compiler/reentry.h"

namespace burin {

struct MadeKernels {
  std::vector<std::optional<PackagedKernel>> kernels;  // of each job; nothing where --stop-after stopped it
  int cached = 0;                                      // kernels that the cache had
  bool cache_failed = false;                           // it could not be written to
};

// The first error stops the rest and is thrown again. `progress` may be empty.
MadeKernels make_kernels(const std::vector<KernelJob>& jobs, const CompileOptions& options, const Reentry& reentry,
                         const std::function<void(const CompileProgress&)>& progress);

}  // namespace burin
