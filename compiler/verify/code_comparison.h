// Is the code in a package what its plans and its nonzeros say? PTX is made anew and compared byte by byte.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ir/package/package.h"

namespace burin {

struct CodeComparison {
  int same = 0;                        // kernels whose PTX was made anew, byte for byte
  std::vector<std::string> different;  // of others: whose they are, and what is wrong
  int edited = 0, without_ptx = 0;     // kernels that cannot be compared: a person edited them; machine code alone
  std::string other_version;           // of the burin that made the package, where it is not this one; then none was
  bool passed() const { return different.empty(); }
};

// Compares the kernels of programs or steps whose names match `layer`. `jobs`: kernels at once, 0: one for each
// processor. `progress` is called after each kernel, one call at a time.
CodeComparison compare_code(const Package& package, const std::optional<std::string>& layer, int jobs,
                            const std::function<void(int done, int all, const std::string& what)>& progress);

}  // namespace burin
