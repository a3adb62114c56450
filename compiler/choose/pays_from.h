// From which share of zeros on it pays to skip them.
#pragma once

#include <optional>
#include <vector>

#include "compiler/task.h"
#include "ir/program.h"

namespace burin {

// Of the input of the task's convolution, whose zeros are known: by the models of providers that skip zeros, and by the
// least time of the others among `compared`. Nothing: whatever the share, no such kernel takes less.
std::optional<double> skipping_pays_from(const Task& task, const std::vector<KernelOption>& compared);

}  // namespace burin
