// The arithmetic of launches: grid and scratch memory from a kernel's form and a batch size; how a network runs a batch
// that is no compiled one, and where the scratch memory of its steps lies. Pure functions.
#pragma once

#include <vector>

#include "ir/kernel.h"
#include "ir/program.h"
#include "runtime/burin/network.hpp"
#include "runtime/burin/runtime.hpp"

namespace burin {

// Throw Error(usage) for a batch that is not within 1..kMaxBatch, Error(unsupported) for a grid over the limits.
LaunchGrid launch_grid(const Kernel& kernel, int batch);
WorkspaceSize launch_workspace(const Kernel& kernel, int batch);

// Throws Error(usage) when `io` or `workspace` is not what a launch of the kernel needs.
void check_launch(const Kernel& kernel, const LaunchIo& io, const WorkspaceView& workspace,
                  const WorkspaceSize& needed);

// `programs`: of one name, batch sizes ascending, at least one. A batch up to the largest is run by the next larger
// program, a larger one by as many runs of the largest as there are whole ones in it, and the rest like a batch of its
// own; programs that take any number run all at once. Throws Error(usage) for a batch that is not within 1..kMaxBatch.
NetworkSchedule make_schedule(const std::vector<const Program*>& programs, int batch);

// Where counters and partial sums of a network's steps lie.
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
