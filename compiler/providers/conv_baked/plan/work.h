// What a pattern asks of each output-channel group: multiply-adds and activation loads per input channel.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/baked_plan.h"
#include "ir/sparse_pattern.h"

namespace burin {

// The work of one input channel within one group.
struct ChannelWork {
  int channel = 0;
  int multiply_adds = 0;  // nonzeros
  int loads = 0;          // filter positions with a nonzero: each activation is loaded once, by the first channel of
                          // those that are loaded together
};

// Per thread of a block. Real numbers, because the coarse search works on means.
struct SliceWork {
  double multiply_adds = 0, loads = 0, channels = 0;
};

// Per group, the input channels that it reads, ascending. `group_of` gives the group of each output channel.
// `together`: channels that one load brings.
std::vector<std::vector<ChannelWork>> count_work(const SparsePattern& pattern, const std::vector<int>& group_of,
                                                 std::size_t groups, int together = 1);

// Group of each output channel of the plan.
std::vector<int> group_of_outputs(const std::vector<std::vector<int>>& groups, int out_channels);

// One entry per slice, in the plan's order. `by_group`: count_work() of the plan's groups, whose channels all have a
// slice. Channels that the plan stages count even where no nonzero reads them.
std::vector<SliceWork> slice_work(const BakedPlan& plan, const std::vector<std::vector<ChannelWork>>& by_group,
                                  int in_channels);

}  // namespace burin
