// global_average: the mean of each channel, a warp for each, or for as many as lie side by side, of which a lane then
// adds up one. Of halves it writes floats, each image's by itself.
#define BURIN_TEMPLATE_DEF "compiler/providers/global_average/global_average.def"
#include "templates/kernels/places.h"

constexpr u32 kAtOnce = 8;  // loads of a thread in flight

// The mean of a plane whose words those threads of a warp have added up that have its channel.
BURIN_DEVICE float mean_of(float mine) {
  float sum = mine;
#pragma unroll
  for (i32 distance = kWarpThreads / 2; distance > 0; distance /= 2) {
    if (distance >= channels_together()) sum += burin_dev_shuffle_xor(sum, distance);
  }
  return sum * (1.0f / (elements() / (place_words() * channels_together())));
}
BURIN_DEVICE float mean_of(f32x4 sum) {
  return mean_of(vector() == kQuadWords ? (sum[0] + sum[1]) + (sum[2] + sum[3]) : sum[0]);
}
BURIN_DEVICE void store_mean(float* output, u32 image, u32 channel, float mean) {
  burin_dev_global_store(output_of(output, image), bytes_of(channel), mean);
}

BURIN_KERNEL void burin_kernel(const float* input, float* output, const float*, const float*, i32 batch) {
  burin_dev_await_launch();
  const u32 thread = burin_dev_thread(), lane = thread % kWarpThreads;
  const u32 wanted = block_of_image() * (block_threads() / kWarpThreads) + thread / kWarpThreads;
  const u32 first = at_most(wanted, divide_up(channels(), channels_together()) - 1) * elements();
  const u32 channel = wanted * channels_together() + lane;
  const u32 pieces = elements() / vector();
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
      values[i] = load(vector(), image, bytes_of(first + at_most(piece, pieces - 1) * vector()));
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
  const auto store = [&](u32 of_images, float mean) BURIN_INLINED {
    const u32 stored = first_image() + of_images;
    const bool exists = lane < static_cast<u32>(channels_together()) && channel < static_cast<u32>(channels());
    if (exists && stored < static_cast<u32>(batch)) store_mean(output, stored, channel, mean);
  };
  if (place_words() == 1) {
    store(0, mean_of(sum.first));
    if (in_halves() != kFloats) store(1, mean_of(sum.second));
    return;
  }
  // A piece is a place of eight images.
#pragma unroll
  for (u32 i = 0; i < kQuadWords; ++i) {
    store(2 * i, mean_of(sum.first[i]));
    store(2 * i + 1, mean_of(sum.second[i]));
  }
}
