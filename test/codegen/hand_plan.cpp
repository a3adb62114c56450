#include "test/codegen/hand_plan.h"

#include <algorithm>
#include <set>

#include "ir/limits.h"
#include "ir/saturate.h"

using namespace burin;

namespace burin_test {

KernelPlan plan_by_hand(const ConvLayer& layer, const HandPlan& hand, const std::string& arch_name) {
  const ConvShape& shape = layer.shape;
  KernelPlan plan;
  plan.arch = arch_name;
  plan.tile = {hand.tile.images, std::min(hand.tile.rows, shape.out_h()), std::min(hand.tile.cols, shape.out_w())};
  plan.threads = static_cast<int>((ceil_div(plan.tile.pixels(), kWarpSize) + hand.idle_warps) * kWarpSize);

  SharedLayout& shared = plan.shared;
  shared.patch_rows = (plan.tile.rows - 1) * shape.stride_h + (shape.kernel_h - 1) * shape.dilation_h + 1;
  shared.patch_cols = (plan.tile.cols - 1) * shape.stride_w + (shape.kernel_w - 1) * shape.dilation_w + 1;
  shared.channels_per_row = hand.channels_per_row;
  shared.row_pitch = shared.patch_cols * shared.channels_per_row + hand.padding_words;
  shared.image_pitch = shared.patch_rows * shared.row_pitch + hand.padding_words;
  shared.channel_pitch = plan.tile.images * shared.image_pitch + hand.padding_words;

  // Neighbouring outputs go to different groups.
  const auto groups = static_cast<std::size_t>(ceil_div(shape.out_channels, hand.group_channels));
  plan.groups.resize(groups);
  std::vector<std::set<int>> channels(groups);
  for (int k = 0; k < shape.out_channels; ++k) plan.groups[k % groups].push_back(k);
  for (const Tap& tap : analyse(layer).taps) channels[tap.k % groups].insert(tap.c);
  if (hand.all_channels) {
    for (std::set<int>& read : channels) {
      for (int c = 0; c < shape.in_channels; ++c) read.insert(c);
    }
  }

  plan.splits = hand.splits;
  if (hand.splits > 1) plan.reduction = hand.cluster ? Reduction::cluster : Reduction::last_block;
  for (std::size_t g = 0; g < groups; ++g) {
    if (hand.backwards) std::reverse(plan.groups[g].begin(), plan.groups[g].end());
    for (int split = 0; split < hand.splits; ++split) {
      Slice slice{static_cast<int>(g), split, {}};
      int i = 0;
      for (const int c : channels[g]) {
        if (i++ % hand.splits == split) slice.channels.push_back(c);
      }
      if (hand.backwards) std::reverse(slice.channels.begin(), slice.channels.end());
      plan.slices.push_back(std::move(slice));
    }
  }
  if (hand.direct) {
    plan.staging = Staging::direct;
    plan.shared = {};
  }
  plan.stage_channels = hand.stage_channels;
  plan.buffers = hand.direct ? 1 : hand.buffers;
  plan.barrier_every = hand.barrier_every;
  plan.load_ahead = hand.load_ahead;
  const ArchSpec& arch = arch_by_name(plan.arch);
  plan.max_registers = std::min(arch.max_registers_per_thread,
                                most_registers(arch.registers_per_multiprocessor, plan.threads / kWarpSize));
  return plan;
}

HandPlan random_hand_plan(const ConvLayer& layer, Random& random, const std::string& arch) {
  while (true) {
    HandPlan hand;
    hand.tile = {random.integer(1, 3), random.integer(1, 12), random.integer(1, 14)};
    hand.idle_warps = random.chance(0.3) ? random.integer(1, 3) : 0;
    hand.group_channels = random.chance(0.2) ? random.integer(1, 2) : random.integer(3, 60);
    hand.splits = random.chance(0.5) ? random.integer(2, 5) : 1;
    hand.cluster = arch_by_name(arch).clusters && random.chance(0.5);
    hand.stage_channels = random.integer(1, 12);
    hand.buffers = random.integer(1, kMaxBuffers);
    if (hand.buffers == 1) hand.stage_channels = layer.shape.in_channels;  // one stage: it has no other buffer
    hand.channels_per_row = random.chance(0.4) ? random.integer(2, 5) : 1;
    hand.padding_words = random.integer(0, 5);
    hand.barrier_every = random.chance(0.5) ? random.integer(1, 40) : 0;
    hand.load_ahead = random.chance(0.5) ? random.integer(1, kMaxLoadAhead) : 8;
    const ConvShape& shape = layer.shape;
    hand.direct = shape.kernel_h == 1 && shape.kernel_w == 1 && shape.pad == Padding{} && random.chance(0.5);
    hand.all_channels = random.chance(0.3);
    hand.backwards = random.chance(0.3);
    // Large patches may not fit: drawn again, smaller ones will.
    if (verify(plan_by_hand(layer, hand, arch), layer.shape).empty()) return hand;
  }
}

}  // namespace burin_test
