// Links from a report to the files that `compile --dump-dir` has written.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ir/package/package.h"

namespace burin {

struct DumpLink {
  std::string name;  // "60-kernel.ptx"
  std::string href;  // relative to the report, as a URL has it
};

// By the symbols of the kernels: the stages that are there, in their order. Links start from the folder `beside`. Where
// the PTX in the package is another than that in the folder, nothing of that kernel is linked, and a note says so.
// Throws Error(bad_input) where the folder has nothing of the package's kernels.
std::map<std::string, std::vector<DumpLink>> dump_links(const Package& package, const std::string& folder,
                                                        const std::string& beside, std::vector<std::string>& notes);

}  // namespace burin
