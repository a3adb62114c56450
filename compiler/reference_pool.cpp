#include "compiler/reference_pool.h"

#include <algorithm>
#include <limits>

#include "ir/error.h"

namespace burin {
namespace {

// The window whose first position is (top, left) of the plane.
double window(const Pool& pool, const double* plane, std::int64_t rows, std::int64_t cols, std::int64_t top,
              std::int64_t left) {
  double largest = -std::numeric_limits<double>::infinity(), sum = 0;
  int inside = 0, counted = 0;
  for (int r = 0; r < pool.kernel_h; ++r) {
    for (int s = 0; s < pool.kernel_w; ++s) {
      const std::int64_t y = top + r * pool.dilation_h, x = left + s * pool.dilation_w;
      // Rounding up, a window may reach beyond the padding, which never counts.
      if (y < rows + pool.pad.bottom && x < cols + pool.pad.right) ++counted;
      if (y < 0 || y >= rows || x < 0 || x >= cols) continue;
      ++inside;
      sum += plane[y * cols + x];
      largest = std::max(largest, plane[y * cols + x]);
    }
  }
  return pool.kind == PoolKind::max ? largest : sum / (pool.count_padding ? counted : inside);
}

}  // namespace

std::vector<double> reference_pool(const Pool& pool, std::int64_t rows, std::int64_t cols,
                                   std::span<const double> values) {
  const std::int64_t out_rows = pooled_rows(pool, rows), out_cols = pooled_cols(pool, cols);
  const auto planes = static_cast<std::int64_t>(values.size()) / (rows * cols);
  BURIN_CHECK(static_cast<std::int64_t>(values.size()) == planes * rows * cols, "{} values in planes of {}x{}",
              values.size(), rows, cols);
  std::vector<double> result;
  result.reserve(static_cast<std::size_t>(planes * out_rows * out_cols));
  for (std::int64_t plane = 0; plane < planes; ++plane) {
    for (std::int64_t row = 0; row < out_rows; ++row) {
      for (std::int64_t col = 0; col < out_cols; ++col) {
        result.push_back(window(pool, values.data() + plane * rows * cols, rows, cols,
                                row * pool.stride_h - pool.pad.top, col * pool.stride_w - pool.pad.left));
      }
    }
  }
  return result;
}

}  // namespace burin
