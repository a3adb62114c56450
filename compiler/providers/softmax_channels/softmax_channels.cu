// softmax_channels: over the channels of each pixel, a thread for each.
#define BURIN_TEMPLATE_DEF "compiler/providers/softmax_channels/softmax_channels.def"
#include "templates/kernels/template_kernel.h"

constexpr u32 kAtOnce = 4;  // loads of a thread in flight

// visit(channel, value) for each channel of a pixel.
template <typename Visit>
BURIN_DEVICE void for_each_channel(const float* from, u32 pixel, Visit visit) {
#pragma nounroll
  for (u32 first = 0; first < static_cast<u32>(channels()); first += kAtOnce) {
    float values[kAtOnce];
#pragma unroll
    for (u32 i = 0; i < kAtOnce; ++i) {
      const u32 channel = at_most(first + i, channels() - 1);
      values[i] = burin_dev_global_load(from, bytes_of(channel * plane() + pixel));
    }
#pragma unroll
    for (u32 i = 0; i < kAtOnce; ++i) {
      if (first + i < static_cast<u32>(channels())) visit(first + i, values[i]);
    }
  }
}

BURIN_KERNEL void burin_kernel(const float* input, float* output, const float*, const float*, i32) {
  burin_dev_await_launch();
  const u32 pixel = block_of_image() * block_threads() + burin_dev_thread();
  if (pixel >= static_cast<u32>(plane())) return;
  const float* from = input_of(input, first_image());
  float* to = output_of(output, first_image());
  float largest = -kInfinity, sum = 0;
  for_each_channel(from, pixel, [&](u32, float value) BURIN_INLINED { largest = larger(largest, value); });
  for_each_channel(from, pixel, [&](u32, float value) BURIN_INLINED { sum += burin_dev_exp(value - largest); });
  const float factor = burin_dev_reciprocal(sum);
  for_each_channel(from, pixel, [&](u32 channel, float value) BURIN_INLINED {
    burin_dev_global_store(to, bytes_of(channel * plane() + pixel), burin_dev_exp(value - largest) * factor);
  });
}
