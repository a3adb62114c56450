// The plans one step away from a plan, as constraints for the planner.
#pragma once

#include <vector>

#include "compiler/providers/conv_baked/plan/constraints.h"
#include "compiler/providers/conv_baked/plan/grouping.h"

namespace burin {

// One choice changed in each: splits, their reduction, groups (to the next of `options` that is a tenth
// away), channels of a stage, buffers, loads ahead, barrier cadence, clusters; what promises most first. Choices that
// `fixed` makes stay. Not every one has a plan: that is for the planner to say.
std::vector<PlanConstraints> neighbours_of(const BakedPlan& plan, const PlanConstraints& fixed,
                                           const std::vector<GroupOption>& options);

}  // namespace burin
