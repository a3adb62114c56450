// Scratch memory of a network's steps: where each step's counters and partial sums lie.
#pragma once

#include <vector>

#include "ir/program.h"
#include "runtime/burin/runtime.hpp"

namespace burin {

struct ScratchPlace {
  std::int64_t counters = 0, partials = 0;  // bytes from the beginning of each part
  WorkspaceSize size;
};
struct ScratchLayout {
  std::vector<ScratchPlace> steps;
  WorkspaceSize total;
};

// Partial sums of steps that can never run at the same time share bytes. Counters are never shared: a launch leaves
// them zero, and a step's own are then zero for its next launch whatever the others do. `sizes`: of each step.
ScratchLayout lay_out_scratch(const Program& program, const std::vector<WorkspaceSize>& sizes);

}  // namespace burin
