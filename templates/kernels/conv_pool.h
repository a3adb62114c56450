// The pool that a convolution ends with, by the constants of pool_window.def. A window begins at a row and a column of
// the convolution's pixels; padding lies before 0.
#pragma once

#include "pool_window.h"

BURIN_DEVICE bool is_pixel(i32 row, i32 col) {
  return static_cast<u32>(row) < static_cast<u32>(conv_rows()) && static_cast<u32>(col) < static_cast<u32>(conv_cols());
}

// The mean of the window that begins there, of the sum of what lies inside the image.
BURIN_DEVICE float mean_of_window(i32 row, i32 col, float sum) {
  const WindowAxis rows = {row, pool_rows(), 1, conv_rows(), pool_pad_bottom()};
  const WindowAxis cols = {col, pool_cols(), 1, conv_cols(), pool_pad_right()};
  return pool_mean(sum, rows, cols, pool_counts_padding(), !windows_leave_rows(), !windows_leave_cols());
}

BURIN_DEVICE bool has_few_pixels() {
  constexpr i32 kMostUnrolledPixels = 256;
  return pool_rows() * pool_cols() <= kMostUnrolledPixels;
}

// visit(r, s, whether it lies inside the image) for each position of the window, in a loop if it is not unrolled.
template <typename Visit>
BURIN_DEVICE void for_each_pixel_of_window(i32 row, i32 col, Visit visit, bool unrolled = has_few_pixels()) {
  const auto visit_at = [&](u32 r, u32 s) BURIN_INLINED {
    const bool inside = (!windows_leave_rows() && !windows_leave_cols()) ||
                        is_pixel(row + static_cast<i32>(r), col + static_cast<i32>(s));
    visit(r, s, inside);
  };
  if (unrolled) {
#pragma unroll
    for (u32 r = 0; r < static_cast<u32>(pool_rows()); ++r) {
#pragma unroll
      for (u32 s = 0; s < static_cast<u32>(pool_cols()); ++s) visit_at(r, s);
    }
  } else {
#pragma nounroll
    for (u32 i = 0; i < static_cast<u32>(pool_rows() * pool_cols()); ++i) visit_at(i / pool_cols(), i % pool_cols());
  }
}

// What is stored of a window, of what pool_with() made of its positions.
BURIN_DEVICE float end_of_window(i32 row, i32 col, float result) {
  return pool_averages() ? mean_of_window(row, col, result) : result;
}

// What the window makes of value(r, s), which lies at a position of it; beyond the image that may be anything.
template <typename Value>
BURIN_DEVICE float pool_of_window(i32 row, i32 col, Value value) {
  float result = pool_start(pool_averages());
  for_each_pixel_of_window(row, col, [&](u32 r, u32 s, bool inside) BURIN_INLINED {
    result = pool_with(pool_averages(), result, value(r, s), inside);
  });
  return end_of_window(row, col, result);
}
