// pool: largest or mean value of each window of a channel. A thread owns `thread_rows` places of outputs, one below the
// other, and loads what their windows share once; neighbours in a row are neighbours in a warp.
//
// Positions beyond the image are loaded from the nearest one inside and then left out, so that all loads of a window
// are in flight together.
#define BURIN_TEMPLATE_DEF "compiler/providers/pool/pool.def"
#include "templates/kernels/pool_window.h"
#include "templates/kernels/window.h"

constexpr i32 kAtOnce = 8;           // loads in flight of a thread with a loop
constexpr i32 kUnrolledWindow = 25;  // positions of the largest window without a loop

BURIN_DEVICE float mean_of(float sum, i32 top, i32 left) {
  const bool all_rows = inside_rows(out_rows()) || (count_padding() && (out_rows() - 1) * stride_rows() - pad_top() +
                                                                               (kernel_rows() - 1) * dilation_rows() <
                                                                           in_rows() + pad_bottom());
  const bool all_cols = inside_cols(out_cols()) || (count_padding() && (out_cols() - 1) * stride_cols() - pad_left() +
                                                                               (kernel_cols() - 1) * dilation_cols() <
                                                                           in_cols() + pad_right());
  const WindowAxis rows = {top, kernel_rows(), dilation_rows(), in_rows(), pad_bottom()};
  const WindowAxis cols = {left, kernel_cols(), dilation_cols(), in_cols(), pad_right()};
  return pool_mean(sum, rows, cols, count_padding(), all_rows, all_cols);
}

BURIN_DEVICE Values with_values(const Values& result, const Values& values, bool inside) {
  return each_value([&](float a, float b) BURIN_INLINED { return pool_with(average(), a, b, inside); }, result, values);
}

BURIN_DEVICE Values with_row(const float* image, const WindowItem& item, i32 top, i32 left, i32 r, Values result) {
  const i32 y = top + r * dilation_rows();
  const i32 row = inside_rows(computed_rows()) ? y : nearest(y, in_rows());
#pragma unroll
  for (i32 s = 0; s < kernel_cols(); ++s) {
    const i32 x = left + s * dilation_cols();
    const i32 col = inside_cols(out_cols()) ? x : nearest(x, in_cols());
    const Values values = values_at(image, item.channel, row, col);
    result = with_values(result, values, row == y && col == x);
  }
  return result;
}

BURIN_DEVICE Values large_window(const float* image, const WindowItem& item, i32 top, i32 left, Values result) {
#pragma nounroll
  for (i32 r = 0; r < kernel_rows(); ++r) {
    const i32 y = top + r * dilation_rows();
    if (y < 0 || y >= in_rows()) continue;
#pragma nounroll
    for (i32 first = 0; first < kernel_cols(); first += kAtOnce) {
#pragma unroll
      for (i32 i = 0; i < kAtOnce; ++i) {
        const i32 s = first + i, x = left + s * dilation_cols(), col = nearest(x, in_cols());
        const Values values = values_at(image, item.channel, y, col);
        result = with_values(result, values, s < kernel_cols() && col == x);
      }
    }
  }
  return result;
}

// Whose window begins at (top, left).
BURIN_DEVICE Values window(const float* image, const WindowItem& item, i32 top, i32 left) {
  const float none = pool_start(average());
  Values result = same_values(none);
  if (kernel_rows() * kernel_cols() > kUnrolledWindow) {
    result = large_window(image, item, top, left, result);
  } else {
#pragma unroll
    for (i32 r = 0; r < kUnrolledWindow; ++r) {
      if (r < kernel_rows()) result = with_row(image, item, top, left, r, result);
    }
  }
  if (!average()) return result;
  return each_value([&](float sum) BURIN_INLINED { return mean_of(sum, top, left); }, result);
}

BURIN_KERNEL void burin_kernel(const float* input, float* output, const float*, const float*, i32) {
  burin_dev_await_launch();
  const WindowItem item = locate_item();
  if (!item.exists) return;
  const float* image = input_of(input, first_image());
  Values results[kMaxThreadRows];
#pragma unroll
  for (i32 i = 0; i < kMaxThreadRows; ++i) {
    if (i < thread_rows()) results[i] = window(image, item, item.top + i * stride_rows(), item.left);
  }
  store_rows(output, item, results);
}
