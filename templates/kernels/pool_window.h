// What a pool makes of a window: its largest or its mean value.
#pragma once

#include "template_kernel.h"

BURIN_DEVICE float pool_start(bool averages) { return averages ? 0.0f : -kInfinity; }
BURIN_DEVICE float pool_with(bool averages, float result, float value, bool inside) {
  if (averages) return result + (inside ? value : 0.0f);
  return inside ? larger(result, value) : result;
}

// A window along an axis of an image that has `extent` positions, and so many of padding behind them.
struct WindowAxis {
  i32 first;  // position: padding lies before 0
  i32 kernel, dilation;
  i32 extent, pad_behind;
};

// Positions that a mean counts: rounding up, a window may reach beyond the padding, which never counts.
BURIN_DEVICE i32 counted(const WindowAxis& of, bool counts_padding) {
  const i32 low = counts_padding ? of.first : 0, high = of.extent + (counts_padding ? of.pad_behind : 0);
  const i32 skipped = of.first < low ? (low - of.first + of.dilation - 1) / of.dilation : 0;
  const i32 reached = high <= of.first ? 0 : (high - of.first + of.dilation - 1) / of.dilation;
  const i32 end = reached < of.kernel ? reached : of.kernel;
  return end > skipped ? end - skipped : 0;
}

// The mean comes of the sum of what lies inside. `all_rows`, `all_cols`: a mean of any window counts all of them.
BURIN_DEVICE float pool_mean(float sum, const WindowAxis& rows, const WindowAxis& cols, bool counts_padding,
                             bool all_rows, bool all_cols) {
  if (all_rows && all_cols) return sum * (1.0f / (rows.kernel * cols.kernel));
  return sum * burin_dev_reciprocal(static_cast<float>(counted(rows, counts_padding) * counted(cols, counts_padding)));
}
