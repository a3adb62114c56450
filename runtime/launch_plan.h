// The arithmetic of a launch: grid and scratch memory from a kernel's form and a batch size. Pure functions.
#pragma once

#include "ir/kernel.h"
#include "runtime/burin/runtime.hpp"

namespace burin {

inline constexpr std::int64_t kWorkspaceAlignment = 256;  // bytes; partial sums start on such a boundary

// Throw Error(usage) for a batch that is not within 1..kMaxBatch, Error(unsupported) for a grid over the limits.
LaunchGrid launch_grid(const Kernel& kernel, int batch);
WorkspaceSize launch_workspace(const Kernel& kernel, int batch);

// Throws Error(usage) when `io` or `workspace` is not what a launch of the kernel needs.
void check_launch(const Kernel& kernel, const LaunchIo& io, const WorkspaceView& workspace,
                  const WorkspaceSize& needed);

}  // namespace burin
