// The pipeline of one kernel, whoever proposed it: from a task and a candidate to code and data.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

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

void add_kernel(Package& package, PackagedKernel kernel);

// What is made of the candidate, beside its code. `symbol`: its own, and what tells it apart from others.
PackagedKernel describe_kernel(const Task& task, const Candidate& candidate, const Recipe& recipe,
                               const std::string& symbol);

// What was predicted of the kernel, and what was measured.
void note_choice(Kernel& kernel, const Task& task, const Candidate& candidate, const CompileOptions& options);

// The stages, each observed. Nothing when --stop-after stopped it.
std::optional<PackagedKernel> make_kernel(const Task& task, const Candidate& candidate, const std::string& symbol,
                                          const CompileOptions& options, const Reentry& reentry,
                                          const std::optional<std::string>& dump_folder);

// A candidate into a package of one kernel that can be measured: exactly the code that it would get in a package.
// `arch`: the one of the options' architectures that it is measured on. Throws Error. Thread-safe.
Package compile_candidate(const Task& task, const Candidate& candidate, const CompileOptions& options,
                          const std::string& arch);

}  // namespace burin
