// linear_sparse: a fully connected layer whose zeros are not stored. The block's images lie in shared memory, the
// values of an input feature side by side; each warp streams the nonzeros of one output after the other, a share for
// each lane.
//
// Weights, in words: where each output's share begins, and the last one's ends; the biases; the outputs. Each of these
// three begins at a multiple of four. An output: for each lane the feature of its first nonzero; then groups of four
// steps: for each lane four values, then for each lane the distances of these values' features from those before them,
// as four numbers in one word or in two, the second words of all lanes behind the first. A distance that does not fit
// is split up by zeros. With `half_values` the values are FP16, in two words that lie as those of distances do.
#define BURIN_TEMPLATE_DEF "compiler/providers/linear_sparse/linear_sparse.def"
#include "templates/kernels/function.h"

constexpr u32 kSteps = 4;  // of a group
constexpr u32 kGroupsAtOnce = 4;
constexpr i32 kMaxImages = 4;

BURIN_DEVICE u32 aligned(u32 words) { return divide_up(words, kQuadWords) * kQuadWords; }
BURIN_DEVICE u32 bias_start() { return aligned(out_features() + 1); }
BURIN_DEVICE u32 value_words() { return half_values() ? kSteps / 2 : kSteps; }  // of a lane
BURIN_DEVICE u32 group_words() { return kWarpThreads * (value_words() + delta_words()); }

// Shared memory: word image of feature c is at c * block_images() + image.
BURIN_DEVICE void begin_staging(const float* input, i32 batch) {
#pragma unroll
  for (i32 i = 0; i < kMaxImages; ++i) {
    if (i >= block_images()) continue;
    const float* image = input_of(input, at_most(first_image() + i, batch - 1));
#pragma nounroll
    for (u32 c = burin_dev_thread(); c < static_cast<u32>(in_features()); c += block_threads()) {
      burin_dev_copy_async(kSharedStart + c * block_images() * kWordBytes, i * kWordBytes, image, bytes_of(c), 1);
    }
  }
  burin_dev_copy_commit();
}

struct Group {
  f32x4 values;
  u32 halves[2];  // in place of the values
  u32 deltas[2];
};

// `values` and `deltas` are the lane's, of a group that would begin at the weights' start.
BURIN_DEVICE Group load_group(const float* values, const float* deltas, i64 place) {
  Group group;
  if (half_values()) {
    group.halves[0] = burin_dev_global_load_word(values, place);
    group.halves[1] = burin_dev_global_load_word(values, place + bytes_of(kWarpThreads));
  } else {
    group.values = burin_dev_global_load4(values, place);
  }
  group.deltas[0] = burin_dev_global_load_word(deltas, place);
  group.deltas[1] = delta_words() == 1 ? 0 : burin_dev_global_load_word(deltas, place + bytes_of(kWarpThreads));
  return group;
}

BURIN_DEVICE float value_of(const Group& group, u32 step) {
  return half_values() ? half_of(group.halves[step / 2], step % 2) : group.values[step];
}

BURIN_DEVICE u32 delta_of(const Group& group, u32 step) {
  if (delta_words() == 1) return group.deltas[0] >> step * 8 & 0xFF;
  return group.deltas[step / 2] >> step % 2 * 16 & 0xFFFF;
}

BURIN_DEVICE void add_group(const Group& group, u32& feature, f32x4& sums) {
#pragma unroll
  for (u32 step = 0; step < kSteps; ++step) {
    feature += delta_of(group, step);
    const float value = value_of(group, step);
    const u32 place = kSharedStart + feature * block_images() * kWordBytes;
    if (block_images() == 1) {
      sums[0] = __builtin_fmaf(value, burin_dev_shared_load(place, 0), sums[0]);
    } else {
      const f32x4 x = burin_dev_shared_load4(place, 0);
#pragma unroll
      for (i32 i = 0; i < kMaxImages; ++i) sums[i] = __builtin_fmaf(value, x[i], sums[i]);
    }
  }
}

// This lane's part of the output whose share of the weights begins at `start`.
BURIN_DEVICE f32x4 part_of_output(const float* weights, u32 start, u32 end, u32 lane) {
  u32 feature = burin_dev_global_load_word(weights, bytes_of(start + lane));
  const float* values = weights + lane * (half_values() ? 1 : kSteps);
  const float* deltas = weights + kWarpThreads * value_words() + lane;
  u32 place = start + kWarpThreads;
  f32x4 sums = {0, 0, 0, 0};
#pragma nounroll
  for (; place + kGroupsAtOnce * group_words() <= end; place += kGroupsAtOnce * group_words()) {
    Group groups[kGroupsAtOnce];
#pragma unroll
    for (u32 i = 0; i < kGroupsAtOnce; ++i)
      groups[i] = load_group(values, deltas, bytes_of(place) + bytes_of(i * group_words()));
    burin_dev_keep_order(1);
#pragma unroll
    for (u32 i = 0; i < kGroupsAtOnce; ++i) add_group(groups[i], feature, sums);
  }
#pragma nounroll
  for (; place < end; place += group_words()) add_group(load_group(values, deltas, bytes_of(place)), feature, sums);
  return sums;
}

BURIN_KERNEL void burin_kernel(const float* input, float* output, const float*, const float* weights, i32 batch) {
  burin_dev_await_launch();
  begin_staging(input, batch);
  const u32 thread = burin_dev_thread(), lane = thread % kWarpThreads, warps = block_threads() / kWarpThreads;
  const u32 first = block_of_image() * warp_rows() * warps + thread / kWarpThreads;
  burin_dev_copy_wait(0);
  burin_dev_barrier();
#pragma nounroll
  for (i32 i = 0; i < warp_rows(); ++i) {
    const u32 wanted = first + i * warps, row = at_most(wanted, out_features() - 1);
    const u32 start = burin_dev_global_load_word(weights, bytes_of(row));
    const u32 end = burin_dev_global_load_word(weights, bytes_of(row + 1));
    const f32x4 sums = part_of_output(weights, start, end, lane);
    const float bias = has_bias() ? burin_dev_global_load(weights, bytes_of(bias_start() + row)) : 0.0f;
#pragma unroll
    for (i32 image = 0; image < kMaxImages; ++image) {
      if (image >= block_images()) continue;
      const float sum = warp_sum(sums[image]);
      if (lane == static_cast<u32>(image) && wanted < static_cast<u32>(out_features()) &&
          first_image() + image < static_cast<u32>(batch)) {
        burin_dev_global_store(output_of(output, first_image() + image), bytes_of(row), apply(sum + bias));
      }
    }
  }
}
