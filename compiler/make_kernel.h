// The pipeline of a kernel, whoever proposed it: from a task and a candidate to code and data, for one, for all of a
// compilation, and once more from what a package holds.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compiler/kernel_job.h"
#include "compiler/options.h"
#include "compiler/providers/provider.h"
#include "compiler/reentry.h"
#include "ir/package/package.h"

namespace burin {

// A kernel as it goes into a package: what the manifest says of it, and its files.
struct PackagedKernel {
  Kernel kernel;
  std::vector<std::pair<std::string, std::string>> files;  // path in the package, content
  std::string edited_module;                               // what a person edited; it stays out of packages
};

// Who makes kernels: "0.1.0, LLVM 19.1.7". The same versions make the same PTX of the same plan and weights.
std::string tool_version();

void add_kernel(Package& package, PackagedKernel kernel);

// What is made of the candidate, beside its code.
PackagedKernel describe_kernel(const Task& task, const Candidate& candidate, const Recipe& recipe);

// What was predicted of the kernel, and what was measured.
void note_choice(Kernel& kernel, const Task& task, const Candidate& candidate, const CompileOptions& options);

// The stages, each observed. Nothing when --stop-after stopped it.
std::optional<PackagedKernel> make_kernel(const Task& task, const Candidate& candidate, const CompileOptions& options,
                                          const Reentry& reentry, const std::optional<std::string>& dump_folder);

// All kernels of a compilation.
struct MadeKernels {
  std::vector<std::optional<PackagedKernel>> kernels;  // of each job; nothing where --stop-after stopped it
  int cached = 0;                                      // kernels that the cache had
  bool cache_failed = false;                           // it could not be written to
};
// They are made by several threads or found in the cache. The first error stops the rest and is thrown again.
// `progress` may be empty.
MadeKernels make_kernels(const std::vector<KernelJob>& jobs, const CompileOptions& options, const Reentry& reentry,
                         const std::function<void(const CompileProgress&)>& progress);

// A candidate into a package of one kernel that can be measured: exactly the code that it would get in a package.
// `arch`: the one of the options' architectures that it is measured on. Throws Error. Thread-safe.
Package compile_candidate(const Task& task, const Candidate& candidate, const CompileOptions& options,
                          const std::string& arch);

// Leaves what compile_candidate() made in the options' cache, where make_kernels() finds it if it is to make the same
// machine code.
void keep_candidate(const Task& task, const Candidate& candidate, const CompileOptions& options,
                    const std::string& arch, const Package& compiled);

// The kernel of a package that has no other.
PackagedKernel only_kernel(const Package& package);

// The module of a kernel, made anew from what a package holds of it: so no package brings code for the host. Bitcode is
// for the host executor. Throws Error(unsupported) for a kernel that a person edited, Error(bad_input) for one whose
// plan or weights in the package are not sound.
std::string rebuild_module(const Package& package, const Kernel& kernel);
// The kernel's PTX, made anew in the same way, for `arch`.
std::string rebuild_ptx(const Package& package, const Kernel& kernel, const std::string& arch);

}  // namespace burin
