#include "compiler/cli/tuning.h"

#include "compiler/assemble/assemble.h"
#include "compiler/cli/console.h"
#include "compiler/cli/table.h"
#include "compiler/measure/gpu_measurer.h"
#include "compiler/program_tasks.h"
#include "compiler/tune/candidate.h"
#include "compiler/tune/tune.h"
#include "ir/error.h"

namespace burin {
namespace {

void note_faults(const std::vector<TunedKernel>& tuned) {
  for (const TunedKernel& kernel : tuned) {
    for (const TuningCandidate& candidate : kernel.evidence.candidates) {
      if (candidate.fault.empty()) continue;
      print_note(fmt::format("layer '{}', batch {}: {} {} was left out: {}", kernel.layer, kernel.batch,
                             candidate.provider, candidate.plan, candidate.fault));
    }
  }
}

}  // namespace

std::vector<TunedKernel> tune_on_gpu(const Network& network, const CompileOptions& options, int plans,
                                     double budget_s) {
  GpuMeasurer measurer(options.archs);
  if (find_assembler().kind == AssemblerInfo::Kind::none) {
    fail(ErrorKind::unsupported, "--tune measures machine code, and there is no assembler: {}", find_assembler().note);
  }
  const TuneOptions tune_options{.plans = plans, .budget_s = budget_s, .jobs = options.jobs};
  const std::string arch = measurer.device().arch;
  const std::vector<Task> tasks = layer_tasks(network, options);
  std::vector<TunedKernel> tuned;
  {
    ProgressBar progress("tuning");
    tuned = tune_tasks(
        tasks, options, tune_options,
        [&](const Task& task, const Candidate& candidate) { return compile_candidate(task, candidate, options, arch); },
        measurer,
        [&](const TuneProgress& state) {
          std::string what = fmt::format("{} b{}, plan {}/{}", state.layer, state.batch, state.plans_done, state.plans);
          if (state.best_us > 0) what += fmt::format(", best {} us", microseconds_text(state.best_us));
          progress.update(state.kernels_done, state.kernels, what);
          progress.finished(what);
        });
  }
  note_faults(tuned);
  if (tuned.size() < tasks.size()) {
    print_note(
        fmt::format("--tune-budget: the time sufficed for {} of {} kernels, those with the most work; the others "
                    "are the models' choice",
                    tuned.size(), tasks.size()));
  }
  return tuned;
}

}  // namespace burin
