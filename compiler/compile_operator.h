// The pipeline of the kernel of an operator beside the convolutions.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compiler/compile.h"
#include "compiler/jobs.h"
#include "ir/package/package.h"

namespace burin {

struct PackagedOperator {
  OperatorRecord record;
  std::vector<std::pair<std::string, std::string>> files;  // path in the package, content
};

// Nothing when --stop-after stopped it.
std::optional<PackagedOperator> compile_operator(const OperatorJob& job, const CompileOptions& options,
                                                 const std::optional<std::string>& dump_folder);

}  // namespace burin
