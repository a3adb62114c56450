// The rules of a plan's precision; part of verify(BakedPlan).
#pragma once

#include <string>
#include <vector>

#include "ir/baked_plan.h"

namespace burin {

std::vector<std::string> precision_faults(const BakedPlan& plan);

}  // namespace burin
