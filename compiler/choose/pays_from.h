// From which share of zeros on it pays to skip them.
#pragma once

#include <vector>

#include "compiler/task.h"
#include "ir/kernel.h"
#include "ir/program.h"

namespace burin {

// The input of the task's convolution has zeros that are known. Models of the providers that skip zeros say from where
// on these pay, beside the least time of kernels among `compared` that skip none. Where those were measured nothing is
// said, since models are off by more than what is to be told apart.
InputZeros skipping_pays_from(const Task& task, const std::vector<KernelOption>& compared);

}  // namespace burin
