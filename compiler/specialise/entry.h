// The kernel's entry: what all slices share, and the jump to the block's own.
#pragma once

#include <string>
#include <vector>

#include "compiler/specialise/template_holes.h"
#include "ir/baked_plan.h"

namespace burin {

// Fills the holes of the entry. `slices` are in the order of the plan's.
void build_entry(TemplateHoles& holes, const BakedPlan& plan, const std::vector<llvm::Function*>& slices);
// The finished entry's name, and what the assembler must know of the launch.
void set_entry(llvm::Module& module, const std::string& symbol, const BakedPlan& plan);
// The same of a kernel of which no more is known than the threads of its blocks.
void set_entry(llvm::Module& module, const std::string& symbol, int threads);

}  // namespace burin
