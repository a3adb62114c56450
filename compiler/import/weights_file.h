// Opens a weights file of any format.
#pragma once

#include <string>

#include "compiler/import/weights_tensor.h"

namespace burin {

// The format is taken from the content, and from the name's ending where the content is too broken to tell. Throws
// Error(bad_input), also for a file of a format that burin does not read.
WeightsFile open_weights_file(const std::string& path);

}  // namespace burin
