// From which share of zeros on it pays to skip them.
#pragma once

#include <vector>

#include "compiler/task.h"
#include "ir/kernel.h"
#include "ir/program.h"

namespace burin {

// What is known of the zeros that the task's convolution reads, and the share from which on the models estimate that
// the best kernel which skips them takes less than every one of `compared` that skips none. Where those were measured
// nothing is said, since models are off by more than what is to be told apart.
InputZeros skipping_pays_from(const Task& task, const std::vector<KernelOption>& compared);

}  // namespace burin
