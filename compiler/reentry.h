// Re-entry: a stage file that a person edited is fed back into the pipeline (--from FILE).
#pragma once

#include <string>

#include "compiler/assemble/assemble.h"
#include "compiler/choose/choose.h"
#include "compiler/options.h"
#include "compiler/sandbox/sandbox.h"
#include "compiler/task.h"

namespace burin {

struct Reentry {
  std::string op;           // whose kernel it is of; empty: of the only one
  std::string path;         // empty: nothing is fed back
  std::string plan;         // the text of a plan; empty: there is none
  std::string plan_path;    // the file that it is in
  std::string module_text;  // an edited 50-specialised.ll
  std::string ptx;          // an edited 60-kernel.ptx

  bool is_for(const Task& task) const { return !path.empty() && (op.empty() || op == task.name); }
};

// FILE ends in .txt (a plan), .ll or .ptx. A module or PTX was made for a plan: 30-plan.txt beside it is read too;
// where there is none the planner's own plan is taken. Throws Error(usage) or Error(bad_input).
Reentry read_reentry(const std::string& path);

// Where it is of the only kernel, precision, layout and activity maps are those of a plan that was fed back. Throws
// Error(usage) where something else was asked for.
CompileOptions with_reentry(CompileOptions options, const Reentry& reentry);

// The plan that was fed back, by the provider that it names. Throws Error(bad_input) where it cannot be read,
// Error(unsupported) where it is not legal.
Choice reentry_choice(const Reentry& reentry, const Task& task);

// The PTX that was fed back; empty when none was. Throws Error(bad_input) when `symbol` is not its entry.
std::string edited_ptx(const Reentry& reentry, const std::string& symbol);

// PTX of the module that was fed back, made in a sandbox: this process reads nothing of it. `owner`: whose kernel it
// is, for errors. Throws Error(bad_input). No other thread may be at work with LLVM meanwhile (Sandbox).
std::string ptx_of_edited(const Reentry& reentry, const std::string& symbol, const std::string& arch,
                          const std::string& owner, const SandboxLimits& limits = {});

// Does what assemble() does with PTX that a person edited or that was made of what they edited: in another process,
// which nvJitLink's is a sandbox for. Throws Error(bad_input) where the assembler rejects it or its process ends. No
// other thread may be at work with LLVM or the assembler meanwhile (Sandbox).
AssembledKernel assemble_edited(const Reentry& reentry, const std::string& ptx, const std::string& arch,
                                const std::string& symbol, const std::string& owner, const SandboxLimits& limits = {});

}  // namespace burin
