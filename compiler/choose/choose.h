// Which kernel a task gets: the best of what all providers propose.
#pragma once

#include <vector>

#include "compiler/network/passes.h"
#include "compiler/options.h"
#include "compiler/providers/provider.h"
#include "compiler/task.h"
#include "ir/program.h"

namespace burin {

struct Choice {
  Candidate candidate;
  std::vector<KernelOption> options;  // what was compared, the chosen one first; one where there was no choice
};

// Those that may make the task's kernel, by CompileOptions::kernels and ::plan; the ones whose
// proposals cost little first.
std::vector<const Provider*> allowed_providers(const Task& task, const CompileOptions& options);

// CompileOptions::plan where it is for this provider, else nothing.
std::string choices_for(const Provider& provider, const CompileOptions& options);

// Up to `count` candidates of each that may make the task's kernel, those with the least estimates first. Throws
// Error(unsupported) where there is none.
std::vector<Candidate> all_candidates(const Task& task, const CompileOptions& options, int count);

// Goes by the estimates, or by measurements where there are any. Throws Error(unsupported) where no provider
// can do the task, or where CompileOptions::kernels names one for it that cannot.
Choice choose(const Task& task, const CompileOptions& options);

// Which pools behind a convolution are to be kernels of their own: most providers cannot pool. There the layer and the
// pool apart are estimated to take less time together, for every batch size, than what can, or CompileOptions::kernels
// asks for such a provider. `options` must outlive it.
StaysApart pools_that_stay_apart(const CompileOptions& options);

// The formats in which convolutions compute follow CompileOptions::precision and the layouts. One whose kernel is
// asked of a provider that knows FP32 alone stays in FP32. `options` must outlive it.
FormatsOf convolution_formats(const CompileOptions& options);

inline GraphChoices graph_choices(const CompileOptions& options) {
  return {pools_that_stay_apart(options), convolution_formats(options)};
}

}  // namespace burin
