// From which share of zeros on it pays to skip them.
#pragma once

#include <vector>

#include "compiler/task.h"
#include "ir/kernel.h"
#include "ir/program.h"

namespace burin {

// Of the input of the task's convolution, whose zeros are known: by the models of providers that skip zeros, and by the
// least time of the others among `compared`. Where those were measured nothing is said, since models are off by more
// than what is to be told apart.
InputZeros skipping_pays_from(const Task& task, const std::vector<KernelOption>& compared);

}  // namespace burin
