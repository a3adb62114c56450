// Which block computes which output channels, and which input channels it reads.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/providers/conv_baked/plan/work.h"
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

// All options with at most kMaxGroupChannels accumulators, those with the largest groups first; no group is empty.
std::vector<GroupOption> group_options(const ConvShape& shape, const SparsePattern& pattern);

// Output channels dealt so that the groups cost nearly the same, and little because the channels of a group read the
// same activations; each group ascending. Convolution groups that are packed are consecutive where that is nearly as
// even. `together` channels that lie side by side in the output go to the same group where its capacity allows, so
// that one store writes them.
std::vector<std::vector<int>> deal_outputs(const ConvShape& shape, const SparsePattern& pattern,
                                           const GroupOption& option, int together = 1);

// A group's input channels cut into `splits` ranges, so that the heaviest is as light as possible; every split
// ascending, and none empty where there are as many channels. Channels that the group does not read are left out at the
// ends of a range, and inside it where several follow each other. With `align` > 1 a range begins and ends at multiples
// of it, or at the end of `in_channels`, and leaves none out.
std::vector<std::vector<int>> deal_channels(const std::vector<ChannelWork>& work, int in_channels, int splits,
                                            int align = 1);

}  // namespace burin
