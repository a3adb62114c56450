// Which file is whose: options that take NAME=FILE for each tensor, or FILE where there is one.
#pragma once

#include <string>
#include <vector>

namespace burin {

struct TensorOption {
  std::string name;    // "--calibrate"
  std::string tensor;  // what it gives files for: "input", "output"
};

// The file of each tensor, in the order of `names`. `what` has them: "the network" or "layer 'conv1'". Throws
// Error(usage) for names that there are not, and for tensors without a file.
std::vector<std::string> files_of(const TensorOption& option, const std::vector<std::string>& given,
                                  const std::vector<std::string>& names, const std::string& what);

}  // namespace burin
