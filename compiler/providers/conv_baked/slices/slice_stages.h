// The stages of a slice: the copies of each, and when they begin.
#pragma once

#include "compiler/providers/conv_baked/slices/slice_parts.h"
#include "compiler/providers/conv_baked/slices/slice_taps.h"

namespace burin {

// With fewer channels a loop's frame outweighs what it saves: the template's loop copies four at once.
inline constexpr int kLoopedCopies = 8;

// Staging::shared: adds the bodies of `prologue` and `stages`.
void build_stages(SliceParts& parts, TapBuilder& taps, const SliceProgram& program, HoleBodies& bodies);
// Staging::bulk: adds the body of `stages`; the entry has started the first copies.
void build_bulk_stages(SliceParts& parts, TapBuilder& taps, const SliceProgram& program, HoleBodies& bodies);

}  // namespace burin
