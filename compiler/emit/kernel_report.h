// The dump's 70-kernel.json: what the assembler reported and the map of the PTX.
#pragma once

#include <string>

#include "ir/package/manifest.h"

namespace burin {

std::string kernel_report(const Kernel& kernel, const std::string& ptx);

}  // namespace burin
