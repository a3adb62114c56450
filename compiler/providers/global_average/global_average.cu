// global_average: the mean of each channel, a warp for each.
#define BURIN_TEMPLATE_DEF "compiler/providers/global_average/global_average.def"
#include "templates/kernels/template_kernel.h"

constexpr u32 kAtOnce = 8;  // loads of a thread in flight

BURIN_KERNEL void burin_kernel(const float* input, float* output, const float*, const float*, i32) {
  burin_dev_await_launch();
  const u32 thread = burin_dev_thread(), lane = thread % kWarpThreads;
  const u32 wanted = block_of_image() * (block_threads() / kWarpThreads) + thread / kWarpThreads;
  const u32 channel = at_most(wanted, channels() - 1);
  const u32 pieces = plane() / vector();
  const float* image = input_of(input, first_image());
  f32x4 sum = {0, 0, 0, 0};
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
      if (piece < pieces) sum += values[i];
    }
  }
  const float mine = vector() == kQuadWords ? (sum[0] + sum[1]) + (sum[2] + sum[3]) : sum[0];
  const float mean = warp_sum(mine) * (1.0f / plane());
  if (lane == 0 && wanted < channels()) {
    burin_dev_global_store(output_of(output, first_image()), bytes_of(channel), mean);
  }
}
