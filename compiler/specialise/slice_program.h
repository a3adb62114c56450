// What one slice of a kernel does, as plain records in the order of execution. The specialiser only walks them.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/kernel_plan.h"
#include "ir/sparse_pattern.h"

namespace burin {

struct AccumulatorTap {
  int accumulator = 0;  // position of the output channel in its group
  float weight = 0;
};

// One activation, loaded once from shared memory, and every multiply-add of the slice that uses it.
struct LoadedTap {
  int c = 0, r = 0, s = 0;
  // Bytes: in shared memory from the thread's lane address, or, with direct staging, from its pixel in channel 0.
  std::int64_t offset = 0;
  std::vector<AccumulatorTap> uses;
};

struct ChannelCopy {
  std::int64_t source_bytes = 0;  // from channel 0 of the image
  std::uint32_t slot_bytes = 0;   // from slot 0 of buffer 0
};

struct StageProgram {
  std::vector<ChannelCopy> copies;
  std::vector<LoadedTap> loads;
};

struct SliceProgram {
  int group = 0, split = 0;
  std::vector<StageProgram> stages;

  std::int64_t multiply_adds() const;
  std::int64_t shared_loads() const;
};

// One program per slice, in the order of plan.slices. Plan, shape and pattern must verify together.
std::vector<SliceProgram> lower_plan(const KernelPlan& plan, const ConvShape& shape, const SparsePattern& pattern);

}  // namespace burin
