// The rules of a plan's precision; part of verify(KernelPlan).
#pragma once

#include <string>
#include <vector>

#include "ir/kernel_plan.h"

namespace burin {

std::vector<std::string> precision_faults(const KernelPlan& plan);

}  // namespace burin
