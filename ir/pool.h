// Pool: the largest or the mean value of each window of a channel; an operator of its own, or the end of a convolution
// (Epilogue).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/named_enum.h"

namespace burin {

// Rows and columns of nothing around an image.
struct Padding {
  int top = 0, bottom = 0, left = 0, right = 0;
  bool operator==(const Padding&) const = default;
};

// "3" when both are the same, else "3x5".
std::string pair_text(int h, int w);
// "1" when all sides are the same, "1x2" when opposite ones are, else "top,bottom,left,right".
std::string padding_text(const Padding& pad);

enum class PoolKind { max, average };
constexpr EnumNames<2> names_of(PoolKind) { return {"a pool", {"max", "average"}}; }

struct Pool {
  PoolKind kind = PoolKind::max;
  int kernel_h = 1, kernel_w = 1;
  int stride_h = 1, stride_w = 1;
  int dilation_h = 1, dilation_w = 1;
  Padding pad = {};
  bool round_up = false;       // the output's size; windows that begin behind the last row or column are left out
  bool count_padding = false;  // average: padding counts as zeros (never what lies beyond the padding)
  bool operator==(const Pool&) const = default;
};

// Windows of a pool or a filter along an axis: output rows or columns; 0 when there are none.
std::int64_t window_count(std::int64_t in, std::int64_t pad_before, std::int64_t pad_after, std::int64_t kernel,
                          std::int64_t stride, std::int64_t dilation, bool round_up = false);
std::int64_t pooled_rows(const Pool& pool, std::int64_t in_h);
std::int64_t pooled_cols(const Pool& pool, std::int64_t in_w);

// All faults of the attributes, and of windows of an image of these sizes: each must hold at least one element, since a
// maximum or an average of nothing has no value.
std::vector<std::string> verify(const Pool& pool, std::int64_t in_h, std::int64_t in_w);

// Values that one output adds up; 0 of a maximum.
int summed_values(const Pool& pool);

// "max 3x3, stride 2, pad 1, rounded up".
std::string describe(const Pool& pool);

}  // namespace burin
