// pool: largest or mean value of each window of a channel. A thread owns one output; neighbours in a row are neighbours
// in a warp, and what windows share comes from the first cache.
//
// Positions beyond the image are loaded from the nearest one inside and then left out, so that all loads of a window
// are in flight together.
#define BURIN_OPERATOR_DEF "pool.def"
#include "operator.h"

constexpr i32 kUnrolledWindow = 25;  // positions of the largest window without a loop

// No window reaches beyond the image.
BURIN_DEVICE bool inside_rows() {
  return pad_top() == 0 && (out_rows() - 1) * stride_rows() + (kernel_rows() - 1) * dilation_rows() < in_rows();
}
BURIN_DEVICE bool inside_cols() {
  return pad_left() == 0 && (out_cols() - 1) * stride_cols() + (kernel_cols() - 1) * dilation_cols() < in_cols();
}

BURIN_DEVICE i32 nearest(i32 at, i32 extent) { return at < 0 ? 0 : at >= extent ? extent - 1 : at; }

// Positions of a window that begins at `begin` which lie in [low, high).
BURIN_DEVICE i32 positions_between(i32 begin, i32 kernel, i32 dilation, i32 low, i32 high) {
  const i32 skipped = begin < low ? (low - begin + dilation - 1) / dilation : 0;
  const i32 reached = high <= begin ? 0 : (high - begin + dilation - 1) / dilation;
  const i32 end = reached < kernel ? reached : kernel;
  return end > skipped ? end - skipped : 0;
}

// Rounding up, a window may reach beyond the padding, which never counts.
BURIN_DEVICE float mean_of(float sum, i32 top, i32 left) {
  const bool all_rows = inside_rows() || (count_padding() && (out_rows() - 1) * stride_rows() - pad_top() +
                                                                     (kernel_rows() - 1) * dilation_rows() <
                                                                 in_rows() + pad_bottom());
  const bool all_cols = inside_cols() || (count_padding() && (out_cols() - 1) * stride_cols() - pad_left() +
                                                                     (kernel_cols() - 1) * dilation_cols() <
                                                                 in_cols() + pad_right());
  if (all_rows && all_cols) return sum * (1.0f / (kernel_rows() * kernel_cols()));
  const i32 before = count_padding() ? 1024 : 0;
  const i32 rows =
      positions_between(top, kernel_rows(), dilation_rows(), -before, in_rows() + (count_padding() ? pad_bottom() : 0));
  const i32 cols =
      positions_between(left, kernel_cols(), dilation_cols(), -before, in_cols() + (count_padding() ? pad_right() : 0));
  return sum * burin_dev_reciprocal(static_cast<float>(rows * cols));
}

BURIN_DEVICE float with_row(const float* image, u32 plane, i32 top, i32 left, i32 r, float result) {
  const i32 y = top + r * dilation_rows();
  const i32 row = inside_rows() ? y : nearest(y, in_rows());
#pragma unroll
  for (i32 s = 0; s < kernel_cols(); ++s) {
    const i32 x = left + s * dilation_cols();
    const i32 col = inside_cols() ? x : nearest(x, in_cols());
    const float value = burin_dev_global_load(image, bytes_of(plane + row * in_cols() + col));
    const bool inside = row == y && col == x;
    if (average()) {
      result += inside ? value : 0.0f;
    } else {
      result = inside ? larger(result, value) : result;
    }
  }
  return result;
}

BURIN_DEVICE float large_window(const float* image, u32 plane, i32 top, i32 left, float result) {
#pragma nounroll
  for (i32 r = 0; r < kernel_rows(); ++r) {
    const i32 y = top + r * dilation_rows();
    if (y < 0 || y >= in_rows()) continue;
#pragma nounroll
    for (i32 s = 0; s < kernel_cols(); ++s) {
      const i32 x = left + s * dilation_cols();
      if (x < 0 || x >= in_cols()) continue;
      const float value = burin_dev_global_load(image, bytes_of(plane + y * in_cols() + x));
      result = average() ? result + value : larger(result, value);
    }
  }
  return result;
}

BURIN_KERNEL void burin_kernel(const float* input, float* output, const float*, const float*, i32) {
  const u32 plane_words = out_rows() * out_cols();
  const u32 word = block_of_group() * block_threads() + burin_dev_thread();
  if (word >= channels() * plane_words) return;
  const u32 channel = word / plane_words, pixel = word % plane_words;
  const i32 top = static_cast<i32>(pixel / out_cols()) * stride_rows() - pad_top();
  const i32 left = static_cast<i32>(pixel % out_cols()) * stride_cols() - pad_left();
  const float* image = input_of(input, first_image());
  const u32 plane = channel * (in_rows() * in_cols());
  float result = average() ? 0.0f : -kInfinity;
  if (kernel_rows() * kernel_cols() <= kUnrolledWindow) {
#pragma unroll
    for (i32 r = 0; r < kUnrolledWindow; ++r) {
      if (r < kernel_rows()) result = with_row(image, plane, top, left, r, result);
    }
  } else {
    result = large_window(image, plane, top, left, result);
  }
  burin_dev_global_store(output_of(output, first_image()), bytes_of(word),
                         average() ? mean_of(result, top, left) : result);
}
