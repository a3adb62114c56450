// The list that a verify() fills: all faults, each a sentence, after a common beginning where there is one.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace burin {

class Faults {
 public:
  Faults() = default;
  explicit Faults(std::string prefix) : prefix_(std::move(prefix)) {}

  void add(const std::string& text) { list_.push_back(prefix_ + text); }

  // `limit` names the constant that the range comes from, where it comes from one.
  void require_range(std::string_view attribute, std::int64_t value, std::int64_t low, std::int64_t high,
                     std::string_view limit = {}) {
    if (value >= low && value <= high) return;
    const std::string named = limit.empty() ? "" : fmt::format(" ({})", limit);
    add(fmt::format("{} is {}, allowed is {} to {}{}", attribute, value, low, high, named));
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
  const std::vector<std::string>& list() const { return list_; }
  std::vector<std::string> take() { return std::move(list_); }

 private:
  std::string prefix_;
  std::vector<std::string> list_;
};

}  // namespace burin
