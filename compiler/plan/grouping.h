// Which block computes which output channels, and which input channels it reads.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/plan/work.h"
#include "ir/conv_layer.h"
#include "ir/sparse_pattern.h"

namespace burin {

// One way to cut the output channels. The convolution's own groups stay together, so that a slice reads few channels:
// either each is cut into `parts`, or `packed` of them make one group.
struct GroupOption {
  int groups = 1;    // of the plan
  int capacity = 1;  // channels of the fullest
  int parts = 1, packed = 1;
  SliceWork mean;  // of a group; loads and channels as expected of a pattern without order
};

// All ways with at most kMaxGroupChannels accumulators, largest groups first; none empty.
std::vector<GroupOption> group_options(const ConvShape& shape, const SparsePattern& pattern);

// Output channels dealt so that the groups have nearly the same number of nonzeros; each group ascending.
std::vector<std::vector<int>> deal_outputs(const ConvShape& shape, const SparsePattern& pattern,
                                           const GroupOption& option);

// A group's input channels dealt to splits of nearly the same work, at most `stage_channels` x stages each; every split
// ascending.
std::vector<std::vector<int>> deal_channels(const std::vector<ChannelWork>& work, int splits, int stage_channels);

}  // namespace burin
