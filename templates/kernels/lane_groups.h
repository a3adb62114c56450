// What kernels share that work on groups of values of an image, those along some of its axes: `lanes` threads have a
// group, each with every `lanes`-th value of it. They are one thread, where neighbouring groups have neighbouring
// values; a warp; or the block.
#pragma once

#include "template_kernel.h"

constexpr u32 kMostWarps = 32;                           // of a block
constexpr u32 kExchangeBytes = kMostWarps * kWordBytes;  // of one exchange between warps
constexpr u32 kHeldValues = 8;                           // of a thread in registers

// Where number `index` along three axes lies; the first of them that there is needs no remainder.
struct ThreeAxes {
  i32 extents[3], steps[3];
};
BURIN_DEVICE u32 word_along(const ThreeAxes& axes, u32 index) {
  const bool one = axes.extents[0] == 1, two = one && axes.extents[1] == 1;
  if (two) return index * axes.steps[2];
  u32 word = index % axes.extents[2] * axes.steps[2];
  index /= axes.extents[2];
  if (one) return word + index * axes.steps[1];
  word += index % axes.extents[1] * axes.steps[1];
  return word + index / axes.extents[1] * axes.steps[0];
}
BURIN_DEVICE u32 group_word(u32 group) {
  return word_along(
      {{group_extent0(), group_extent1(), group_extent2()}, {group_step0(), group_step1(), group_step2()}}, group);
}
BURIN_DEVICE u32 value_word(u32 value) {
  return word_along(
      {{value_extent0(), value_extent1(), value_extent2()}, {value_step0(), value_step1(), value_step2()}}, value);
}

// A thread's group and its lane in it. Threads beyond the last group work on that as well, and store nothing.
struct Lane {
  bool exists;
  u32 group, lane;
};
BURIN_DEVICE Lane locate_lane() {
  const u32 width = lanes(), thread = burin_dev_thread();
  const u32 group = block_of_image() * (block_threads() / width) + thread / width;
  return {group < static_cast<u32>(groups()), at_most(group, groups() - 1), thread % width};
}

// Where in a group a thread's piece `i` is, and whether it is there.
BURIN_DEVICE u32 value_of_piece(const Lane& at, u32 i) { return i * lanes() + at.lane; }

// with(result, value) for each value of the thread, a few of which are loaded before the first is used.
template <typename With>
BURIN_DEVICE float over_values(const float* from, const Lane& at, float start, With with) {
  constexpr u32 kAtOnce = 4;
  const u32 first = group_word(at.group);
  float result = start;
#pragma nounroll
  for (u32 piece = 0; piece * lanes() < static_cast<u32>(count()); piece += kAtOnce) {
    float values[kAtOnce];
#pragma unroll
    for (u32 i = 0; i < kAtOnce; ++i) {
      const u32 value = at_most(value_of_piece(at, piece + i), count() - 1);
      values[i] = burin_dev_global_load(from, bytes_of(first + value_word(value)));
    }
#pragma unroll
    for (u32 i = 0; i < kAtOnce; ++i) {
      if (value_of_piece(at, piece + i) < static_cast<u32>(count())) result = with(result, values[i]);
    }
  }
  return result;
}

// What the lanes of a group have, put together: both(both(first, second), ...), in all of them. All threads of the
// block call it; `exchange` is another number each time.
template <typename Both>
BURIN_DEVICE float over_lanes(float mine, u32 exchange, Both both) {
  if (lanes() == 1) return mine;
  float result = mine;
#pragma unroll
  for (u32 distance = kWarpThreads / 2; distance > 0; distance /= 2) {
    result = both(result, burin_dev_shuffle_xor(result, distance));
  }
  const u32 warps = lanes() / kWarpThreads;
  if (warps <= 1) return result;
  const u32 thread = burin_dev_thread(), place = kSharedStart + exchange * kExchangeBytes;
  if (thread % kWarpThreads == 0) burin_dev_shared_store(place + thread / kWarpThreads * kWordBytes, 0, result);
  burin_dev_barrier();
  result = burin_dev_shared_load(place, 0);
#pragma unroll
  for (u32 warp = 1; warp < kMostWarps; ++warp) {
    if (warp < warps) result = both(result, burin_dev_shared_load(place, warp * kWordBytes));
  }
  return result;
}
BURIN_DEVICE float sum_over_lanes(float mine, u32 exchange) {
  return over_lanes(mine, exchange, [](float a, float b) BURIN_INLINED { return a + b; });
}
BURIN_DEVICE float largest_over_lanes(float mine, u32 exchange) {
  return over_lanes(mine, exchange, [](float a, float b) BURIN_INLINED { return larger(a, b); });
}
