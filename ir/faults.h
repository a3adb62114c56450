// The list that a verify() fills: its faults, each a sentence, after a common beginning where there is one. There is an
// end to it: what was made to have faults could have more than there is memory.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/limits.h"

namespace burin {

class Faults {
 public:
  Faults() = default;
  explicit Faults(std::string prefix) : prefix_(std::move(prefix)) {}

  static constexpr std::size_t kMost = 1000;

  void add(const std::string& text) {
    if (list_.size() + 1 < kMost) {
      list_.push_back(prefix_ + text);
    } else if (!full()) {
      list_.push_back(prefix_ + "there are more faults, which are not told");
    }
  }
  template <typename... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    add(fmt::format(format, std::forward<Args>(args)...));
  }
  // Those of a part; returns whether there are any.
  bool add_all(const std::vector<std::string>& faults, std::string_view of = {}) {
    for (const std::string& fault : faults) add(fmt::format("{}{}", of, fault));
    return !faults.empty();
  }

  // `limit` names the constant that the range comes from, where it comes from one.
  void require_range(std::string_view attribute, std::int64_t value, std::int64_t low, std::int64_t high,
                     std::string_view limit = {}) {
    if (value >= low && value <= high) return;
    const std::string named = limit.empty() ? "" : fmt::format(" ({})", limit);
    add(fmt::format("{} is {}, allowed is {} to {}{}", attribute, value, low, high, named));
  }

  template <typename Padding>
  void require_padding(const Padding& pad) {
    require_range("pad top", pad.top, 0, kMaxPadding, "kMaxPadding");
    require_range("pad bottom", pad.bottom, 0, kMaxPadding, "kMaxPadding");
    require_range("pad left", pad.left, 0, kMaxPadding, "kMaxPadding");
    require_range("pad right", pad.right, 0, kMaxPadding, "kMaxPadding");
  }
  // A filter and a pool are windows.
  template <typename Window>
  void require_window(const Window& window, std::pair<int, std::string_view> most_extent,
                      std::pair<int, std::string_view> most_stride) {
    require_range("kernel_h", window.kernel_h, 1, most_extent.first, most_extent.second);
    require_range("kernel_w", window.kernel_w, 1, most_extent.first, most_extent.second);
    require_range("stride_h", window.stride_h, 1, most_stride.first, most_stride.second);
    require_range("stride_w", window.stride_w, 1, most_stride.first, most_stride.second);
    require_range("dilation_h", window.dilation_h, 1, kMaxStride, "kMaxStride");
    require_range("dilation_w", window.dilation_w, 1, kMaxStride, "kMaxStride");
    require_padding(window.pad);
  }

  // "3 of the weights are not finite; ...". The first is enough: where one is NaN, usually many are.
  void require_finite(std::string_view kind, std::span<const float> values) {
    std::size_t count = 0, first = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (!std::isfinite(values[i]) && count++ == 0) first = i;
    }
    if (count > 0) {
      add(fmt::format("{} of the {} are not finite; the first is element {} ({})", count, kind, first, values[first]));
    }
  }

  bool empty() const { return list_.empty(); }
  // What compares all with all can stop.
  bool full() const { return list_.size() >= kMost; }
  const std::vector<std::string>& list() const { return list_; }
  std::vector<std::string> take() { return std::move(list_); }

 private:
  std::string prefix_;
  std::vector<std::string> list_;
};

}  // namespace burin
