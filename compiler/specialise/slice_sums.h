// What becomes of a slice's sums: where they start, how splits are added, what is written.
#pragma once

#include "compiler/specialise/slice_parts.h"

namespace burin {

// Adds the bodies of `clear`, of the plan's reduction and of `outputs`. `running`: what the multiply-adds left, per
// accumulator.
void build_sums(SliceParts& parts, const SliceProgram& program, const std::vector<RunningSum>& running,
                HoleBodies& bodies);

}  // namespace burin
