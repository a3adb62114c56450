// conv_depthwise: a convolution in which each output reads one input channel. A thread owns `thread_rows` outputs, one
// below the other, and loads what their windows share once. All blocks run the same code, so little of it is fetched.
//
// Weights: for each output channel the filter, then the bias, filled up to a multiple of four words.
#define BURIN_TEMPLATE_DEF "compiler/providers/conv_depthwise/conv_depthwise.def"
#include "templates/kernels/function.h"
#include "templates/kernels/window.h"

constexpr i32 kMaxTaps = 25;
constexpr u32 kMaxQuads = (kMaxTaps + 1 + kQuadWords - 1) / kQuadWords;

BURIN_DEVICE i32 taps() { return kernel_rows() * kernel_cols(); }

// All windows' values: neighbours in a column share rows, which the compiler loads once.
BURIN_DEVICE float window_sum(const float* image, u32 plane, i32 top, i32 left, const float* filter) {
  float sum = 0;
#pragma unroll
  for (i32 tap = 0; tap < kMaxTaps; ++tap) {
    if (tap >= taps()) continue;
    const i32 y = top + tap / kernel_cols() * dilation_rows(), x = left + tap % kernel_cols() * dilation_cols();
    const i32 row = inside_rows(computed_rows()) ? y : nearest(y, in_rows());
    const i32 col = inside_cols() ? x : nearest(x, in_cols());
    const float value = burin_dev_global_load(image, bytes_of(plane + row * in_cols() + col));
    sum = __builtin_fmaf(row == y && col == x ? value : 0.0f, filter[tap], sum);
  }
  return sum;
}

BURIN_KERNEL void burin_kernel(const float* input, float* output, const float* other, const float* weights, i32) {
  const WindowItem item = locate_item();
  // Weights are no other kernel's output.
  const u32 quads = divide_up(taps() + 1, kQuadWords), channel = item.exists ? item.channel : 0;
  float filter[kMaxQuads * kQuadWords];
#pragma unroll
  for (u32 i = 0; i < kMaxQuads; ++i) {
    if (i >= quads) continue;
    const f32x4 words = burin_dev_global_load4(weights, bytes_of((channel * quads + i) * kQuadWords));
#pragma unroll
    for (u32 j = 0; j < kQuadWords; ++j) filter[i * kQuadWords + j] = words[j];
  }
  burin_dev_await_launch();
  if (!item.exists) return;
  const float* image = input_of(input, first_image());
  const u32 plane = item.channel / outputs_per_channel() * (in_rows() * in_cols());
  float results[kMaxThreadRows];
#pragma unroll
  for (i32 i = 0; i < kMaxThreadRows; ++i) {
    if (i >= thread_rows()) continue;
    results[i] = window_sum(image, plane, item.top + i * stride_rows(), item.left, filter) + filter[taps()];
    if (residual() && item.first_row + i < static_cast<u32>(out_rows())) {
      const u32 word = (item.channel * out_rows() + item.first_row + i) * out_cols() + item.col;
      results[i] += burin_dev_global_load(residual_of(other, first_image()), bytes_of(word));
    }
  }
#pragma unroll
  for (i32 i = 0; i < kMaxThreadRows; ++i) {
    if (i < thread_rows()) results[i] = apply(results[i]);
  }
  Pair stored[kMaxThreadRows];
#pragma unroll
  for (i32 i = 0; i < kMaxThreadRows; ++i) {
    if (i < thread_rows()) stored[i] = {results[i], results[i]};
  }
  store_rows(output, item, stored);
}
