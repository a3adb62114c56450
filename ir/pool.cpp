#include "ir/pool.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/faults.h"
#include "ir/limits.h"
#include "ir/saturate.h"

namespace burin {
namespace {

// Adds the faults of the windows along one axis.
void check_windows(Faults& faults, std::string_view axis, std::int64_t in, std::int64_t out, int before, int after,
                   int kernel, int stride, int dilation) {
  if (out < 1) {
    faults.add("the output has no {}s: {} with pad {} + {} are less than the {} that the window covers", axis, in,
               before, after, (kernel - 1) * dilation + 1);
  }
  for (std::int64_t i = 0; i < out; ++i) {
    const std::int64_t begin = i * stride - before;
    const std::int64_t skipped = begin < 0 ? ceil_div(-begin, dilation) : 0;  // window positions before the image
    if (skipped < kernel && begin + skipped * dilation < in) continue;
    faults.add("the window of output {} {} lies in the padding alone: {} {}s, pad {} + {}, kernel {}, dilation {}",
               axis, i, in, axis, before, after, kernel, dilation);
    break;
  }
}

}  // namespace

std::string pair_text(int h, int w) { return h == w ? fmt::format("{}", h) : fmt::format("{}x{}", h, w); }

std::string padding_text(const Padding& pad) {
  if (pad.top == pad.bottom && pad.left == pad.right) return pair_text(pad.top, pad.left);
  return fmt::format("{},{},{},{}", pad.top, pad.bottom, pad.left, pad.right);
}

std::int64_t window_count(std::int64_t in, std::int64_t pad_before, std::int64_t pad_after, std::int64_t kernel,
                          std::int64_t stride, std::int64_t dilation, bool round_up) {
  const std::int64_t span = in + pad_before + pad_after - dilation * (kernel - 1) - 1;
  if (span < 0 || stride < 1) return 0;
  std::int64_t out = (span + (round_up ? stride - 1 : 0)) / stride + 1;
  if (round_up && (out - 1) * stride >= in + pad_before) --out;
  return std::max<std::int64_t>(out, 0);
}

std::int64_t pooled_rows(const Pool& pool, std::int64_t in_h) {
  return window_count(in_h, pool.pad.top, pool.pad.bottom, pool.kernel_h, pool.stride_h, pool.dilation_h,
                      pool.round_up);
}

std::int64_t pooled_cols(const Pool& pool, std::int64_t in_w) {
  return window_count(in_w, pool.pad.left, pool.pad.right, pool.kernel_w, pool.stride_w, pool.dilation_w,
                      pool.round_up);
}

std::vector<std::string> verify(const Pool& pool, std::int64_t in_h, std::int64_t in_w) {
  Faults faults;
  if (!is_named(pool.kind)) {
    faults.add("kind is {}, which is none", static_cast<int>(pool.kind));
    return faults.take();
  }
  faults.require_window(pool, {kMaxPoolExtent, "kMaxPoolExtent"}, {kMaxPoolExtent, "kMaxPoolExtent"});
  if (!faults.empty()) return faults.take();
  check_windows(faults, "row", in_h, pooled_rows(pool, in_h), pool.pad.top, pool.pad.bottom, pool.kernel_h,
                pool.stride_h, pool.dilation_h);
  check_windows(faults, "column", in_w, pooled_cols(pool, in_w), pool.pad.left, pool.pad.right, pool.kernel_w,
                pool.stride_w, pool.dilation_w);
  return faults.take();
}

int summed_values(const Pool& pool) { return pool.kind == PoolKind::max ? 0 : pool.kernel_h * pool.kernel_w; }

std::string describe(const Pool& pool) {
  std::string text = fmt::format("{} {}x{}, stride {}, pad {}", to_string(pool.kind), pool.kernel_h, pool.kernel_w,
                                 pair_text(pool.stride_h, pool.stride_w), padding_text(pool.pad));
  if (pool.dilation_h != 1 || pool.dilation_w != 1) {
    text += fmt::format(", dilation {}", pair_text(pool.dilation_h, pool.dilation_w));
  }
  if (pool.round_up) text += ", rounded up";
  if (pool.count_padding) text += ", padding counts";
  return text;
}

}  // namespace burin
