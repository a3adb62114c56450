#include "test/codegen/hand_plan.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "ir/baked_plan_pool.h"
#include "ir/limits.h"
#include "ir/saturate.h"

using namespace burin;

namespace burin_test {
namespace {

constexpr int kBulkWords = 4;  // bulk copies move 16 bytes at a time

int multiple_above(std::int64_t value, int multiple) { return static_cast<int>(ceil_div(value, multiple) * multiple); }

int patch_extent(int tile, int stride, int kernel, int dilation) {
  return (tile - 1) * stride + (kernel - 1) * dilation + 1;
}

SharedLayout patch_layout(const BakedPlan& plan, const ConvShape& shape, const HandPlan& hand) {
  SharedLayout shared;
  shared.patch_rows = patch_extent(plan.tile.rows, shape.stride_h, shape.kernel_h, shape.dilation_h);
  shared.patch_cols = patch_extent(plan.tile.cols, shape.stride_w, shape.kernel_w, shape.dilation_w);
  shared.channels_per_row = hand.channels_per_row;
  if (hand.phases) shared.column_phases = shape.stride_w;
  shared.row_pitch = shared.row_words() * shared.channels_per_row + hand.padding_words;
  shared.image_pitch = shared.patch_rows * shared.row_pitch + hand.padding_words;
  shared.channel_pitch = plan.tile.images * shared.image_pitch + hand.padding_words;
  return shared;
}

// ---- bulk
bool whole_planes(const BakedPlan& plan, const ConvShape& shape) { return plan.tile.rows == shape.conv_h(); }

SharedLayout bulk_layout(const BakedPlan& plan, const ConvShape& shape, const HandPlan& hand) {
  const int together = channels_together(plan.input_layout);
  SharedLayout shared;
  shared.patch_rows = whole_planes(plan, shape)
                          ? shape.in_h
                          : patch_extent(plan.tile.rows, shape.stride_h, shape.kernel_h, shape.dilation_h);
  shared.patch_cols = shape.in_w;
  shared.row_pitch = shape.in_w * together;
  shared.channel_pitch = shared.patch_rows * shared.row_pitch;
  shared.image_pitch =
      multiple_above(ceil_div(plan.stage_channels, together) * shared.channel_pitch + hand.padding_words, kBulkWords);
  const int before = shape.pad.top * shape.in_w + shape.pad.left;
  const int behind = shape.pad.bottom * shape.in_w + shape.pad.right;
  shared.margin = multiple_above(std::max(before, behind) * together + hand.padding_words, kBulkWords);
  return shared;
}

// Where a run of channels may begin.
int bulk_multiple(const BakedPlan& plan, const ConvShape& shape) {
  const int together = channels_together(plan.input_layout);
  if (together > 1 || !whole_planes(plan, shape)) return together;
  return kBulkWords / std::gcd(shape.in_h * shape.in_w, kBulkWords);
}

// A split's part of the channels from the first that the group reads to the last.
std::vector<int> run_of_channels(const std::set<int>& read, int split, int splits, int multiple, int in_channels) {
  std::vector<int> run;
  if (read.empty()) return run;
  const int first = *read.begin() / multiple, end = *read.rbegin() / multiple + 1;
  const auto start = [&](int part) { return (first + (end - first) * part / splits) * multiple; };
  for (int c = start(split); c < std::min(start(split + 1), in_channels); ++c) run.push_back(c);
  return run;
}

}  // namespace

BakedPlan plan_by_hand(const ConvLayer& layer, const HandPlan& hand, const std::string& arch_name) {
  const ConvShape& shape = layer.shape;
  BakedPlan plan;
  plan.arch = arch_name;
  plan.input_layout = hand.input_layout;
  plan.output_layout = hand.output_layout;
  plan.precision = hand.precision;
  plan.promote_every = hand.promote_every;
  if (is_half(plan.precision)) plan.input_layout = plan.output_layout = TensorLayout::n2chw;
  plan.staging = hand.staging;
  const bool bulk = hand.staging == Staging::bulk;
  plan.tile = pixel_tile({hand.tile.rows, hand.tile.cols}, hand.tile.images, shape);
  if (bulk) plan.tile.cols = shape.conv_w();
  if (bulk && !whole_planes(plan, shape)) plan.tile.images = 1;
  if (shape.epilogue.pool) plan.outputs = output_tile(plan.tile, shape);
  plan.keeps_halves = hand.keeps_halves && may_keep_halves(plan.precision, shape);
  plan.threads = static_cast<int>((ceil_div(plan.tile.pixels(), kWarpSize) + hand.idle_warps) * kWarpSize);

  const int multiple = bulk ? bulk_multiple(plan, shape) : 1;
  plan.stage_channels = multiple_above(hand.stage_channels, multiple);
  if (bulk) plan.shared = bulk_layout(plan, shape, hand);
  if (plan.staging == Staging::shared) plan.shared = patch_layout(plan, shape, hand);

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
  plan.cluster = {hand.cluster_tiles, plan.reduction == Reduction::cluster ? hand.splits : 1};
  for (std::size_t g = 0; g < groups; ++g) {
    if (hand.backwards) std::reverse(plan.groups[g].begin(), plan.groups[g].end());
    for (int split = 0; split < hand.splits; ++split) {
      Slice slice{static_cast<int>(g), split, {}};
      if (bulk) {
        slice.channels = run_of_channels(channels[g], split, hand.splits, multiple, shape.in_channels);
        plan.slices.push_back(std::move(slice));
        continue;
      }
      int i = 0;
      for (const int c : channels[g]) {
        if (i++ % hand.splits == split) slice.channels.push_back(c);
      }
      if (hand.backwards) std::reverse(slice.channels.begin(), slice.channels.end());
      plan.slices.push_back(std::move(slice));
    }
  }
  if (hand.skips) {
    plan.skips = ActivityMap{hand.skips->images * plan.word_images(), std::min(hand.skips->rows, shape.in_h),
                             std::min(hand.skips->cols, shape.in_w)};
  }
  plan.marks = hand.marks;
  plan.buffers = hand.staging == Staging::direct ? 1 : hand.buffers;
  plan.barrier_every = hand.barrier_every;
  plan.load_ahead = hand.load_ahead;
  if (hand.staging == Staging::direct && !hand.skips)
    plan.load_together = std::min(hand.load_together, hand.load_ahead);
  const ArchSpec& arch = arch_by_name(plan.arch);
  plan.max_registers = std::min(arch.max_registers_per_thread,
                                most_registers(arch.registers_per_multiprocessor, plan.threads / kWarpSize));
  return plan;
}

HandPlan random_hand_plan(const ConvLayer& layer, Random& random, const std::string& arch, Precision precision) {
  while (true) {
    HandPlan hand;
    hand.precision = precision;
    if (precision == Precision::fp16x2) hand.promote_every = random.chance(0.3) ? 0 : random.integer(1, 40);
    hand.tile = {random.integer(1, 3), random.integer(1, 12), random.integer(1, 14)};
    hand.idle_warps = random.chance(0.3) ? random.integer(1, 3) : 0;
    hand.group_channels = random.chance(0.2) ? random.integer(1, 2) : random.integer(3, 60);
    hand.splits = random.chance(0.5) ? random.integer(2, 5) : 1;
    hand.cluster = arch_by_name(arch).clusters && random.chance(0.5);
    if (arch_by_name(arch).clusters && random.chance(0.4)) hand.cluster_tiles = random.integer(2, 4);
    hand.stage_channels = random.integer(1, 12);
    hand.buffers = random.integer(1, kMaxBuffers);
    if (hand.buffers == 1) hand.stage_channels = layer.shape.in_channels;  // one stage: it has no other buffer
    hand.channels_per_row = random.chance(0.4) ? random.integer(2, 5) : 1;
    hand.phases = random.chance(0.5);
    hand.padding_words = random.integer(0, 5);
    hand.barrier_every = random.chance(0.5) ? random.integer(1, 40) : 0;
    hand.load_ahead = random.chance(0.5) ? random.integer(1, kMaxLoadAhead) : 8;
    hand.load_together = random.chance(0.5) ? random.integer(1, kMaxLoadAhead) : 1;
    const ConvShape& shape = layer.shape;
    const bool may_be_direct = shape.kernel_h == 1 && shape.kernel_w == 1 && shape.pad == Padding{};
    if (random.chance(0.4)) hand.staging = Staging::bulk;
    if (may_be_direct && random.chance(0.5)) hand.staging = Staging::direct;
    if (hand.staging == Staging::bulk && random.chance(0.5)) hand.tile.rows = shape.out_h();
    hand.all_channels = random.chance(0.3);
    hand.backwards = random.chance(0.3);
    if (may_keep_halves(precision, shape)) hand.keeps_halves = random.chance(0.7);
    const bool maps = !shape.epilogue.pool;
    hand.marks = maps && random.chance(0.25);
    if (maps && random.chance(0.25))
      hand.skips = PixelTile{random.integer(1, 3), random.integer(1, 12), random.integer(1, 14)};
    // Large patches may not fit: drawn again, smaller ones will.
    if (verify(plan_by_hand(layer, hand, arch), layer.shape).empty()) return hand;
  }
}

}  // namespace burin_test
