// Re-entry: a stage file that a person edited is fed back into the pipeline (--from FILE).
#pragma once

#include <optional>
#include <string>

#include "compiler/assemble/assemble.h"
#include "compiler/compile.h"
#include "ir/kernel_plan.h"
#include "ir/sparse_pattern.h"

namespace burin {

struct Reentry {
  std::string path;
  std::optional<KernelPlan> plan;
  std::string module_text;  // an edited 50-specialised.ll
  std::string ptx;          // an edited 60-kernel.ptx
};

// FILE ends in .txt (a plan), .ll or .ptx. A module or PTX was made for a plan: 30-plan.txt beside it is read too;
// where there is none the planner's own plan is taken. Throws Error(usage) or Error(bad_input).
Reentry read_reentry(const std::string& path);

// Throws Error(usage) when another precision than fp32 was asked for and a plan that was fed back has another one.
void check_precision(const KernelPlan& plan, const Reentry& reentry, const std::string& asked);

// Throws when a layout was asked for and the plan has another: Error(usage) for a plan that was fed back,
// Error(unsupported) for the planner's own.
void check_layout(const KernelPlan& plan, const ConvLayer& layer, const Reentry& reentry,
                  std::optional<TensorLayout> asked);

// Throws Error(usage) when activity maps were asked for and a plan that was fed back has none.
void check_activity(const KernelPlan& plan, const Reentry& reentry, bool asked);

// Throws Error(unsupported) with all faults of a plan, naming the layer. It must be legal on each of `archs`, and its
// precision must be able to hold the weights.
void check_plan(const KernelPlan& plan, const ConvLayer& layer, const SparsePattern& pattern,
                const std::vector<std::string>& archs);

// The PTX that was fed back; empty when none was. Throws Error(bad_input) when `symbol` is not its entry.
std::string edited_ptx(const Reentry& reentry, const std::string& symbol);

// As assemble(), but PTX that a person edited and the assembler rejects is Error(bad_input).
AssembledKernel assemble_edited(const Reentry& reentry, const std::string& arch, const std::string& symbol);

// Options that contradict each other or the network: Error(usage) or Error(unsupported).
void check_options(const Network& network, const CompileOptions& options);

}  // namespace burin
