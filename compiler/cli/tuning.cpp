#include "compiler/cli/tuning.h"

#include "compiler/assemble/assemble.h"
#include "compiler/cli/console.h"
#include "compiler/cli/table.h"
#include "compiler/measure/gpu_measurer.h"
#include "compiler/tune/candidate.h"
#include "compiler/tune/tune.h"
#include "ir/error.h"

namespace burin {
namespace {

void note_faults(const std::vector<TunedKernel>& tuned) {
  for (const TunedKernel& kernel : tuned) {
    for (const TuningCandidate& candidate : kernel.evidence.candidates) {
      if (candidate.fault.empty()) continue;
      print_note(fmt::format("layer '{}', batch {}: plan {} was left out: {}", kernel.layer, kernel.batch,
                             candidate.plan, candidate.fault));
    }
  }
}

}  // namespace

std::vector<TunedKernel> tune_on_gpu(const Network& network, const CompileOptions& options, int plans) {
  GpuMeasurer measurer(options.archs);
  if (find_assembler().kind == AssemblerInfo::Kind::none) {
    fail(ErrorKind::unsupported, "--tune measures machine code, and there is no assembler: {}", find_assembler().note);
  }
  PlanRequest request{1, options.archs, options.plan_constraints};
  request.input_layout = request.output_layout = options.layout.value_or(TensorLayout::nchw);
  request.skip_dead_tiles = options.skip_dead_tiles;
  request.precision = options.precision;
  const TuneOptions tune_options{request, options.batches, plans, options.jobs};
  const std::string arch = measurer.device().arch;
  std::vector<TunedKernel> tuned;
  {
    ProgressBar progress("tuning");
    tuned = tune_network(
        network, tune_options,
        [&](const ConvLayer& layer, const SparsePattern&, const KernelPlan& plan) {
          return compile_candidate(layer, plan, options.archs, arch);
        },
        measurer,
        [&](const TuneProgress& state) {
          std::string what = fmt::format("{} b{}, plan {}/{}", state.layer, state.batch, state.plans_done, state.plans);
          if (state.best_us > 0) what += fmt::format(", best {} us", microseconds_text(state.best_us));
          progress.update(state.kernels_done, state.kernels, what);
          progress.finished(what);
        });
  }
  note_faults(tuned);
  return tuned;
}

}  // namespace burin
