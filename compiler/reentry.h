// Re-entry: a stage file that a person edited is fed back into the pipeline (--from FILE).
#pragma once

#include <optional>
#include <string>

#include "compiler/compile.h"
#include "ir/kernel_plan.h"
#include "ir/sparse_pattern.h"

namespace burin {

struct Reentry {
  std::optional<KernelPlan> plan;
  std::string module_text;  // an edited 50-specialised.ll
  std::string ptx;          // an edited 60-kernel.ptx
};

// FILE ends in .txt (a plan), .ll or .ptx. A module or PTX was made for a plan: 30-plan.txt beside it is read too;
// where there is none the planner's own plan is taken. Throws Error(usage) or Error(bad_input).
Reentry read_reentry(const std::string& path);

// Throws Error(unsupported) with all faults of a plan, naming the layer.
void check_plan(const KernelPlan& plan, const ConvLayer& layer, const SparsePattern& pattern);

// Options that contradict each other or the network: Error(usage) or Error(unsupported).
void check_options(const Network& network, const CompileOptions& options);

}  // namespace burin
