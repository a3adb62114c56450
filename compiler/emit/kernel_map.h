// The map of a kernel's PTX: which lines belong to which group, split and input channel. The dump's 70-kernel.json.
#pragma once

#include <string>
#include <vector>

namespace burin {

struct PtxRange {
  int group = 0, split = 0;
  int channel = -1;                   // -1: the slice's own lines before its first channel
  int first_line = 0, last_line = 0;  // counted from 1
};

std::vector<PtxRange> map_kernel(const std::string& ptx);

}  // namespace burin
