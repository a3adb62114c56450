// lrn: local response normalization across channels. A thread has `thread_channels` channels of one pixel: it loads
// them and those that their windows reach beyond them once, all together.
//
// `scale` is alpha / size, `exponent` is -beta.
#define BURIN_TEMPLATE_DEF "compiler/providers/lrn/lrn.def"
#include "templates/kernels/template_kernel.h"

constexpr i32 kMaxChannels = 8;
constexpr i32 kMaxHeld = 40;  // values of a thread in registers: its channels and their windows

BURIN_DEVICE i32 below() { return (size() - 1) / 2; }
BURIN_DEVICE i32 held() { return thread_channels() + size() - 1; }

BURIN_DEVICE float normalized(float value, float squares) {
  return value * burin_dev_power(__builtin_fmaf(scale(), squares, bias()), exponent());
}

BURIN_DEVICE float value_of(const float* from, i32 channel, u32 pixel) {
  const i32 inside = channel < 0 ? 0 : channel >= channels() ? channels() - 1 : channel;
  const float value = burin_dev_global_load(from, bytes_of(inside * plane() + pixel));
  return inside == channel ? value : 0.0f;
}

BURIN_DEVICE void with_held_values(const float* from, float* to, i32 first, u32 pixel) {
  float values[kMaxHeld], squares[kMaxHeld];
#pragma unroll
  for (i32 i = 0; i < kMaxHeld; ++i) {
    if (i < held()) values[i] = value_of(from, first - below() + i, pixel);
  }
#pragma unroll
  for (i32 i = 0; i < kMaxHeld; ++i) {
    if (i < held()) squares[i] = values[i] * values[i];
  }
#pragma unroll
  for (i32 i = 0; i < kMaxChannels; ++i) {
    if (i >= thread_channels() || first + i >= channels()) continue;
    float sum = 0, mine = 0;
#pragma unroll
    for (i32 other = 0; other < kMaxHeld; ++other) {
      if (other >= i && other < i + size()) sum += squares[other];
      if (other == i + below()) mine = values[other];
    }
    burin_dev_global_store(to, bytes_of((first + i) * plane() + pixel), normalized(mine, sum));
  }
}

// Computes one channel, whose window is too large for registers.
BURIN_DEVICE void with_large_window(const float* from, float* to, i32 channel, u32 pixel) {
  const i32 begin = channel < below() ? 0 : channel - below();
  const i32 wanted = channel - below() + size(), end = wanted < channels() ? wanted : channels();
  float sum = 0;
#pragma nounroll
  for (i32 other = begin; other < end; ++other) {
    const float value = burin_dev_global_load(from, bytes_of(other * plane() + pixel));
    sum = __builtin_fmaf(value, value, sum);
  }
  const u32 word = channel * plane() + pixel;
  burin_dev_global_store(to, bytes_of(word), normalized(burin_dev_global_load(from, bytes_of(word)), sum));
}

BURIN_KERNEL void burin_kernel(const float* input, float* output, const float*, const float*, i32) {
  burin_dev_await_launch();
  const u32 item = block_of_image() * block_threads() + burin_dev_thread();
  const i32 first = item / plane() * thread_channels();
  if (first >= channels()) return;
  const float* from = input_of(input, first_image());
  float* to = output_of(output, first_image());
  if (held() <= kMaxHeld) {
    with_held_values(from, to, first, item % plane());
  } else {
    with_large_window(from, to, first, item % plane());
  }
}
