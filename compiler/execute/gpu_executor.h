// Programs on a GPU, through the runtime.
#pragma once

#include <memory>

#include "compiler/execute/executor.h"

namespace burin {

// What it makes of each tensor is written on memory that was NaN before. A run without a visitor launches the program's
// graph twice, whose outputs must be the same; with one it launches the steps one after the other and looks at each.
std::unique_ptr<Executor> make_gpu_executor(int ordinal, const Package& package);

}  // namespace burin
