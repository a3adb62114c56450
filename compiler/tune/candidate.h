// A candidate into a package of one kernel that can be measured: exactly the code that it would get in a package.
#pragma once

#include <string>

#include "compiler/options.h"
#include "compiler/task.h"
#include "ir/package/package.h"

namespace burin {

// `arch`: the one of the options' architectures that it is measured on. Throws Error. Thread-safe.
Package compile_candidate(const Task& task, const Candidate& candidate, const CompileOptions& options,
                          const std::string& arch);

}  // namespace burin
