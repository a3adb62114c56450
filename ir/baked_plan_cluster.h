// The rules of a plan's clusters; verify() asks for them.
#pragma once

#include <string>
#include <vector>

#include "ir/baked_plan.h"

namespace burin {

// Returns the faults of a plan whose slices are groups x splits.
std::vector<std::string> cluster_faults(const BakedPlan& plan);

}  // namespace burin
