// What one slice of a kernel does, as plain records in the order of execution. The specialiser only walks them.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/baked_plan.h"
#include "ir/element_type.h"
#include "ir/limits.h"
#include "ir/sparse_pattern.h"

namespace burin {

// In the template's `outside`, filter rows are bits from 0 on, columns from here on.
inline constexpr int kOutsideColumnBit = 16;
static_assert(kMaxKernelExtent <= kOutsideColumnBit);

struct AccumulatorTap {
  int accumulator = 0;  // position of the output channel in its group
  int lane = 0;         // input channel within those that were loaded together
  float weight = 0;
};

// One activation, loaded once, and every multiply-add of the slice that uses it; with nchw4, four channels of one.
struct LoadedTap {
  int c = 0, r = 0, s = 0;  // c: the first of the channels
  // Bytes: in shared memory from the thread's lane address, or, with direct staging, from its pixel in channel 0.
  std::int64_t offset = 0;
  // Bits of the template's `outside`: any of them set means that the filter position may lie beyond the image and then
  // does. 0: it never does, or padding is staged as zeros.
  std::uint32_t outside = 0;
  std::vector<AccumulatorTap> uses;
};

// Channels (with nchw4, blocks of four) at equal distances that go to slots at equal distances.
struct ChannelCopies {
  std::int64_t source_bytes = 0;  // of the first, from channel 0 of the image
  std::uint32_t slot_bytes = 0;   // of the first, from slot 0 of buffer 0
  std::int64_t source_step = 0;
  std::uint32_t slot_step = 0;
  int count = 0;
};

struct StageProgram {
  std::vector<ChannelCopies> copies;  // bulk: one
  std::vector<LoadedTap> loads;
};

struct SliceProgram {
  int group = 0, split = 0;
  std::vector<StageProgram> stages;
};

// One program per slice, in the order of plan.slices. Plan, shape and pattern must verify together.
std::vector<SliceProgram> lower_plan(const BakedPlan& plan, const ConvShape& shape, const SparsePattern& pattern);

}  // namespace burin
