// conv_depthwise: a convolution in which each output reads one input channel. A thread owns `thread_rows` places of
// outputs, one below the other, and loads what their windows share once. All blocks run the same code, so little of it
// is fetched. Behind a pool a thread owns one output, and computes all pixels that the pool's window has.
//
// Weights: for each output channel the filter, then the bias, filled up to a multiple of four words.
#define BURIN_TEMPLATE_DEF "compiler/providers/conv_depthwise/conv_depthwise.def"
#include "templates/kernels/conv_pool.h"
#include "templates/kernels/function.h"
#include "templates/kernels/residual.h"
#include "templates/kernels/window.h"

constexpr i32 kMaxTaps = 49;
constexpr u32 kMaxQuads = (kMaxTaps + 1 + kQuadWords - 1) / kQuadWords;

BURIN_DEVICE i32 taps() { return kernel_rows() * kernel_cols(); }

// Whether no pixel that is computed reads beyond the image.
BURIN_DEVICE bool reads_inside_rows() {
  return pools() ? !windows_leave_rows() && inside_rows(conv_rows()) : inside_rows(computed_rows());
}
BURIN_DEVICE bool reads_inside_cols() {
  return pools() ? !windows_leave_cols() && inside_cols(conv_cols()) : inside_cols(out_cols());
}

// The sums of a pixel whose filter begins at (top, left). Neighbours share positions, which the compiler loads once.
BURIN_DEVICE Values filter_sum(const float* image, u32 channel, i32 top, i32 left, const float* filter) {
  Values sum = same_values(0);
#pragma unroll
  for (i32 tap = 0; tap < kMaxTaps; ++tap) {
    if (tap >= taps()) continue;
    const i32 y = top + tap / kernel_cols() * dilation_rows(), x = left + tap % kernel_cols() * dilation_cols();
    const i32 row = reads_inside_rows() ? y : nearest(y, in_rows());
    const i32 col = reads_inside_cols() ? x : nearest(x, in_cols());
    const auto with = [&](float total, float value) BURIN_INLINED { return __builtin_fmaf(value, filter[tap], total); };
    sum = each_value(with, sum, values_at(image, channel, row, col, row == y && col == x));
  }
  return sum;
}

BURIN_DEVICE Values end_of_pixel(const Values& sum, const Values& residuals, float bias) {
  const auto end = [&](float value, float more)
                       BURIN_INLINED { return residual() ? end_of_sum(value + bias, more) : apply(value + bias); };
  return each_value(end, sum, residuals);
}

// What the pool makes of the item's window.
constexpr i32 kMostUnrolledProducts = 150;
BURIN_DEVICE Values pooled(const float* image, const float* added, u32 channel, const WindowItem& item,
                           const float* filter) {
  const i32 first_row = static_cast<i32>(item.first_row) * pool_stride_rows() - pool_pad_top();
  const i32 first_col = static_cast<i32>(item.col) * pool_stride_cols() - pool_pad_left();
  Values result = same_values(pool_start(pool_averages()));
  const auto visit = [&](u32 r, u32 s, bool inside) BURIN_INLINED {
    const i32 row = first_row + static_cast<i32>(r), col = first_col + static_cast<i32>(s);
    Values residuals = same_values(0);
    if (residual()) {
      const u32 pixel = nearest(row, conv_rows()) * conv_cols() + nearest(col, conv_cols());
      residuals = load_place(added, place_at(item.channel, pixel, conv_rows() * conv_cols()));
    }
    const Values sum =
        filter_sum(image, channel, row * stride_rows() - pad_top(), col * stride_cols() - pad_left(), filter);
    const auto with = [&](float before, float value)
                          BURIN_INLINED { return pool_with(pool_averages(), before, value, inside); };
    result = each_value(with, result, end_of_pixel(sum, residuals, filter[taps()]));
  };
  for_each_pixel_of_window(first_row, first_col, visit, pool_rows() * pool_cols() * taps() <= kMostUnrolledProducts);
  return each_value([&](float value) BURIN_INLINED { return end_of_window(first_row, first_col, value); }, result);
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
  if (pools()) {
    results[0] = pooled(image, residual_of(other, first_image()), read_channel, item, filter);
    store_rows(output, item, results);
    return;
  }
#pragma unroll
  for (i32 i = 0; i < kMaxThreadRows; ++i) {
    residuals[i] = same_values(0);
    if (i >= thread_rows()) continue;
    results[i] = filter_sum(image, read_channel, item.top + i * stride_rows(), item.left, filter);
    if (residual() && item.first_row + i < static_cast<u32>(out_rows())) {
      residuals[i] = load_place(residual_of(other, first_image()), place_written(item, i));
    }
  }
#pragma unroll
  for (i32 i = 0; i < kMaxThreadRows; ++i) {
    if (i < thread_rows()) results[i] = end_of_pixel(results[i], residuals[i], filter[taps()]);
  }
  store_rows(output, item, results);
}
