// The pipeline of one kernel, whoever proposed it: from a task and a candidate to code and data.
#pragma once

#include <optional>
#include <string>

#include "compiler/options.h"
#include "compiler/packaged_kernel.h"
#include "compiler/providers/provider.h"
#include "compiler/reentry.h"

namespace burin {

// What is made of the candidate, beside its code. `symbol`: its own, and what tells it apart from others.
PackagedKernel describe_kernel(const Task& task, const Candidate& candidate, const Recipe& recipe,
                               const std::string& symbol);

// What was predicted of the kernel, and what was measured.
void note_choice(Kernel& kernel, const Task& task, const Candidate& candidate, const CompileOptions& options);

// The stages, each observed. Nothing when --stop-after stopped it.
std::optional<PackagedKernel> make_kernel(const Task& task, const Candidate& candidate, const std::string& symbol,
                                          const CompileOptions& options, const Reentry& reentry,
                                          const std::optional<std::string>& dump_folder);

}  // namespace burin
