#include "compiler/measure/tune_on_gpu.h"

#include <fmt/format.h>

#include "compiler/assemble/assemble.h"
#include "compiler/make_kernel.h"
#include "compiler/measure/gpu_measurer.h"
#include "compiler/program_tasks.h"
#include "ir/error.h"

namespace burin {
namespace {

std::vector<std::string> faults_of(const std::vector<TunedKernel>& tuned) {
  std::vector<std::string> notes;
  for (const TunedKernel& kernel : tuned) {
    for (const TuningCandidate& candidate : kernel.evidence.candidates) {
      if (candidate.fault.empty()) continue;
      notes.push_back(fmt::format("layer '{}', batch {}: {} {} was left out: {}", kernel.layer, kernel.batch,
                                  candidate.provider, candidate.plan, candidate.fault));
    }
  }
  return notes;
}

}  // namespace

TunedNetwork tune_on_gpu(const Network& network, const CompileOptions& options, int plans, double budget_s,
                         const std::function<void(const TuneProgress&)>& progress) {
  GpuMeasurer measurer(options.archs);
  if (find_assembler().kind == AssemblerInfo::Kind::none) {
    fail(ErrorKind::unsupported, "--tune measures machine code, and there is no assembler: {}", find_assembler().note);
  }
  const TuneOptions tune_options{.plans = plans, .budget_s = budget_s, .jobs = options.jobs};
  const std::string arch = measurer.device().arch;
  const std::vector<Task> tasks = layer_tasks(network, options);
  TunedNetwork tuned;
  tuned.kernels = tune_tasks(
      tasks, options, tune_options,
      [&](const Task& task, const Candidate& candidate) { return compile_candidate(task, candidate, options, arch); },
      measurer, progress);
  tuned.notes = faults_of(tuned.kernels);
  if (tuned.kernels.size() < tasks.size()) {
    tuned.notes.push_back(
        fmt::format("--tune-budget: the time sufficed for {} of {} kernels, those with the most work; the others are "
                    "the models' choice",
                    tuned.kernels.size(), tasks.size()));
  }
  return tuned;
}

}  // namespace burin
