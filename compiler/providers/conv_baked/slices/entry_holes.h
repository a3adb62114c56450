// The entry's holes: the jump to the block's own slice, and what is begun before it.
#pragma once

#include <vector>

#include "compiler/providers/conv_baked/slices/template_holes.h"
#include "ir/baked_plan.h"

namespace burin {

// Fills the holes of the entry. `slices` are in the order of the plan's.
void fill_entry(TemplateHoles& holes, const BakedPlan& plan, const std::vector<llvm::Function*>& slices);

}  // namespace burin
