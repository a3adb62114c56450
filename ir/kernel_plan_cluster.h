// The rules of a plan's clusters; verify() asks for them.
#pragma once

#include <string>
#include <vector>

#include "ir/kernel_plan.h"

namespace burin {

// Of plans whose slices are groups x splits.
std::vector<std::string> cluster_faults(const KernelPlan& plan);

}  // namespace burin
