#include "compiler/tune/candidate.h"

#include "compiler/make_kernel.h"
#include "ir/kernel_program.h"

namespace burin {

Package compile_candidate(const Task& task, const Candidate& candidate, const CompileOptions& options,
                          const std::string& arch) {
  CompileOptions alone;
  alone.archs = options.archs;
  alone.cubin_archs = {arch};
  Package package;
  package.manifest.tool_version = BURIN_VERSION;
  package.manifest.source = candidate.symbol;
  add_kernel(package, *make_kernel(task, candidate, candidate.symbol, alone, {}, std::nullopt));
  package.manifest.programs = {program_of(package.manifest.kernels.front(), task.batch)};
  return package;
}

}  // namespace burin
