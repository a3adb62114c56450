// global_average: the mean of each channel, a warp for each. Of halves it writes floats, each image's by itself.
#define BURIN_TEMPLATE_DEF "compiler/providers/global_average/global_average.def"
#include "templates/kernels/template_kernel.h"

constexpr u32 kAtOnce = 8;  // loads of a thread in flight

// The mean of a plane whose words the threads of a warp have added up.
BURIN_DEVICE float mean_of(f32x4 sum) {
  const float mine = vector() == kQuadWords ? (sum[0] + sum[1]) + (sum[2] + sum[3]) : sum[0];
  return warp_sum(mine) * (1.0f / plane());
}
BURIN_DEVICE void store_mean(float* output, u32 image, u32 channel, float mean) {
  burin_dev_global_store(output_of(output, image), bytes_of(channel), mean);
}

BURIN_KERNEL void burin_kernel(const float* input, float* output, const float*, const float*, i32 batch) {
  burin_dev_await_launch();
  const u32 thread = burin_dev_thread(), lane = thread % kWarpThreads;
  const u32 wanted = block_of_image() * (block_threads() / kWarpThreads) + thread / kWarpThreads;
  const u32 channel = at_most(wanted, channels() - 1);
  const u32 pieces = plane() / vector();
  const float* image = input_of(input, first_image());
  Values sum = {{0, 0, 0, 0}, {0, 0, 0, 0}};
  const u32 rounds = divide_up(pieces, kWarpThreads * kAtOnce);
#pragma nounroll
  for (u32 round = 0; round < rounds; ++round) {
    f32x4 values[kAtOnce];
#pragma unroll
    for (u32 i = 0; i < kAtOnce; ++i) {
      if (rounds == 1 && i * kWarpThreads >= pieces) continue;
      const u32 piece = (round * kAtOnce + i) * kWarpThreads + lane;
      values[i] = load(vector(), image, bytes_of(channel * plane() + at_most(piece, pieces - 1) * vector()));
    }
#pragma unroll
    for (u32 i = 0; i < kAtOnce; ++i) {
      if (rounds == 1 && i * kWarpThreads >= pieces) continue;
      const u32 piece = (round * kAtOnce + i) * kWarpThreads + lane;
      if (piece >= pieces) continue;
      const Values added = values_of(values[i], in_halves());
      sum = {sum.first + added.first, sum.second + added.second};
    }
  }
  const float first = mean_of(sum.first);
  if (lane == 0 && wanted < channels()) store_mean(output, first_image(), channel, first);
  if (in_halves() == kFloats) return;
  const float second = mean_of(sum.second);
  if (lane == 0 && wanted < channels() && first_image() + 1 < static_cast<u32>(batch)) {
    store_mean(output, first_image() + 1, channel, second);
  }
}
