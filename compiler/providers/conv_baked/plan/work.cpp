#include "compiler/providers/conv_baked/plan/work.h"

namespace burin {

std::vector<std::vector<ChannelWork>> count_work(const SparsePattern& pattern, const std::vector<int>& group_of,
                                                 std::size_t groups, int together) {
  std::vector<std::vector<ChannelWork>> work(groups);
  // Taps are sorted by channel: the last block that each group loaded at a filter position tells whether a tap needs a
  // load of its own.
  const std::size_t positions = static_cast<std::size_t>(pattern.kernel_h) * pattern.kernel_w;
  std::vector<int> last_block(groups * positions, -1);
  for (const Tap& tap : pattern.taps) {
    const int group = group_of[tap.k];
    std::vector<ChannelWork>& channels = work[group];
    if (channels.empty() || channels.back().channel != tap.c) channels.push_back({tap.c, 0, 0});
    ChannelWork& channel = channels.back();
    ++channel.multiply_adds;
    int& last = last_block[group * positions + static_cast<std::size_t>(tap.r) * pattern.kernel_w + tap.s];
    if (last != tap.c / together) {
      last = tap.c / together;
      ++channel.loads;
    }
  }
  return work;
}

std::vector<int> group_of_outputs(const std::vector<std::vector<int>>& groups, int out_channels) {
  std::vector<int> group_of(static_cast<std::size_t>(out_channels), 0);
  for (std::size_t g = 0; g < groups.size(); ++g) {
    for (const int k : groups[g]) group_of[k] = static_cast<int>(g);
  }
  return group_of;
}

std::vector<SliceWork> slice_work(const BakedPlan& plan, const std::vector<std::vector<ChannelWork>>& by_group,
                                  int in_channels) {
  std::vector<SliceWork> work(plan.slices.size());
  std::vector<int> split_of(static_cast<std::size_t>(in_channels), 0);
  for (std::size_t g = 0; g < by_group.size(); ++g) {
    for (int split = 0; split < plan.splits; ++split) {
      const std::size_t slice = g * plan.splits + split;
      for (const int c : plan.slices[slice].channels) split_of[c] = split;
      work[slice].channels = static_cast<double>(plan.slices[slice].channels.size());
    }
    for (const ChannelWork& channel : by_group[g]) {
      SliceWork& slice = work[g * plan.splits + split_of[channel.channel]];
      slice.multiply_adds += channel.multiply_adds;
      slice.loads += channel.loads;
    }
  }
  return work;
}

}  // namespace burin
