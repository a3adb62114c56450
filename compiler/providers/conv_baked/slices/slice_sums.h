// What becomes of a slice's sums: where they start, how splits are added, what is written.
#pragma once

#include "compiler/providers/conv_baked/slices/slice_parts.h"

namespace burin {

// The accumulators of a group whose final sums a slice computes.
struct AddedRange {
  int first = 0, end = 0;
  bool has(int j) const { return first <= j && j < end; }
};
AddedRange added_here(const SliceParts& parts, const SliceProgram& program);

// Adds the bodies of `clear`, of the plan's reduction and of `outputs` or what a pool needs. `running`: what the
// multiply-adds left, per accumulator.
void build_sums(SliceParts& parts, const SliceProgram& program, const std::vector<RunningSum>& running,
                HoleBodies& bodies);

}  // namespace burin
