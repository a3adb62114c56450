#include "compiler/measure/study_on_gpu.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "compiler/execute/executor.h"
#include "compiler/kernel_cache.h"
#include "compiler/make_kernel.h"
#include "compiler/measure/tune_on_gpu.h"
#include "ir/arch.h"
#include "ir/error.h"

namespace burin {

std::vector<std::string> study_on_gpu(Study& study, StudyOptions options, const StudyWatch& watch) {
  const MeasuringCommand command{"study", "--estimate goes by the cost models, which need none"};
  check_can_measure(options.compile.archs, command);
  GpuMeasurer measurer(options.compile.archs, command);
  std::vector<std::string> notes;
  if (options.compile.libraries) {
    for (const std::string& missing : measurer.missing_libraries()) {
      notes.push_back(fmt::format("study measures no call of a library: {}", missing));
    }
  }
  study.source = Estimate::Source::measured;
  study.device = measurer.device();
  options.compile.archs = {study.device.arch};
  const TimeBudget budget(options.budget_s, options.seconds);
  propose(study, options, budget, watch.proposing);
  const CandidateCompiler compile = [&](const Task& task, const Candidate& candidate) {
    return compile_candidate(task, candidate, options.compile, study.device.arch);
  };
  measure(study, options, budget, compile, measurer, watch.measuring);
  if (study.known() > 0) {
    notes.push_back(fmt::format("{} of {} points are of earlier runs, from {} (--anew measures all of them again)",
                                study.known(), study.points.size(), options.compile.cache->folder()));
  }
  if (!study.stopped.empty()) {
    notes.push_back(fmt::format("{} of {} points were measured: {}", study.done(), study.points.size(), study.stopped));
  }
  return notes;
}

}  // namespace burin
