// conv_depthwise: a convolution in which each output reads one input channel. A thread owns `thread_rows` places of
// outputs, one below the other, and loads what their windows share once. All blocks run the same code, so little of it
// is fetched.
//
// Weights: for each output channel the filter, then the bias, filled up to a multiple of four words.
#define BURIN_TEMPLATE_DEF "compiler/providers/conv_depthwise/conv_depthwise.def"
#include "templates/kernels/function.h"
#include "templates/kernels/residual.h"
#include "templates/kernels/window.h"

constexpr i32 kMaxTaps = 49;
constexpr u32 kMaxQuads = (kMaxTaps + 1 + kQuadWords - 1) / kQuadWords;

BURIN_DEVICE i32 taps() { return kernel_rows() * kernel_cols(); }

// All windows' values: neighbours in a column share rows, which the compiler loads once.
BURIN_DEVICE Values window_sum(const float* image, u32 channel, const WindowItem& item, i32 top, const float* filter) {
  Values sum = same_values(0);
#pragma unroll
  for (i32 tap = 0; tap < kMaxTaps; ++tap) {
    if (tap >= taps()) continue;
    const i32 y = top + tap / kernel_cols() * dilation_rows(), x = item.left + tap % kernel_cols() * dilation_cols();
    const i32 row = inside_rows(computed_rows()) ? y : nearest(y, in_rows());
    const i32 col = inside_cols() ? x : nearest(x, in_cols());
    const auto with = [&](float total, float value) BURIN_INLINED { return __builtin_fmaf(value, filter[tap], total); };
    sum = each_value(with, sum, values_at(image, channel, row, col, row == y && col == x));
  }
  return sum;
}

BURIN_KERNEL void burin_kernel(const float* input, float* output, const float* other, const float* weights, i32) {
  const WindowItem item = locate_item();
  // Weights are no other kernel's output.
  const u32 quads = divide_up(taps() + 1, kQuadWords),
            channel = item.exists && !is_filling(item.channel) ? item.channel : 0;
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
  const u32 read_channel = item.channel / outputs_per_channel();
  Values results[kMaxThreadRows], residuals[kMaxThreadRows];
#pragma unroll
  for (i32 i = 0; i < kMaxThreadRows; ++i) {
    residuals[i] = same_values(0);
    if (i >= thread_rows()) continue;
    const float bias = filter[taps()];
    results[i] = each_value([&](float sum) BURIN_INLINED { return sum + bias; },
                            window_sum(image, read_channel, item, item.top + i * stride_rows(), filter));
    if (residual() && item.first_row + i < static_cast<u32>(out_rows())) {
      residuals[i] = load_place(residual_of(other, first_image()), place_written(item, i));
    }
  }
#pragma unroll
  for (i32 i = 0; i < kMaxThreadRows; ++i) {
    if (i >= thread_rows()) continue;
    const auto end = [](float sum, float more)
                         BURIN_INLINED { return residual() ? end_of_sum(sum, more) : apply(sum); };
    results[i] = each_value(end, results[i], residuals[i]);
  }
  store_rows(output, item, results);
}
