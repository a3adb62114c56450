// global_average: the mean of each channel, a warp for each. Of halves it writes floats, each image's by itself.
#define BURIN_TEMPLATE_DEF "compiler/providers/global_average/global_average.def"
#include "templates/kernels/template_kernel.h"

constexpr u32 kAtOnce = 8;  // loads of a thread in flight

// The mean of a plane whose words the threads of a warp have added up; where elements have four words, of one of them.
BURIN_DEVICE float mean_of(f32x4 sum, i32 word) {
  const bool across = vector() == kQuadWords && in_element_words() == 1;
  const float mine = across ? (sum[0] + sum[1]) + (sum[2] + sum[3]) : sum[word];
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
  const u32 words = plane() * in_element_words(), pieces = words / vector();
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
      values[i] = load(vector(), image, bytes_of(channel * words + at_most(piece, pieces - 1) * vector()));
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
  const bool stores = lane == 0 && wanted < channels();
#pragma unroll
  for (i32 word = 0; word < in_element_words(); ++word) {
    const u32 number = first_image() + word * kWordHalves, images = batch;
    const float first = mean_of(sum.first, word);
    if (stores && (word == 0 || number < images)) store_mean(output, number, channel, first);
    if (in_halves() == kFloats) return;
    const float second = mean_of(sum.second, word);
    if (stores && number + 1 < images) store_mean(output, number + 1, channel, second);
  }
}
