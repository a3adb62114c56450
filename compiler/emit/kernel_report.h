// The dump's 70-kernel.json: what the assembler reported and the map of the PTX.
#pragma once

#include <string>
#include <vector>

#include "ir/package/manifest.h"

namespace burin {

// Which lines of a kernel's PTX belong to which group, split and input channel.
struct PtxRange {
  int group = 0, split = 0;
  int channel = -1;                   // -1: the slice's own lines before its first channel
  int first_line = 0, last_line = 0;  // counted from 1
};
std::vector<PtxRange> map_kernel(const std::string& ptx);

std::string kernel_report(const Kernel& kernel, const std::string& ptx);

}  // namespace burin
