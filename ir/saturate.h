// Sizes are checked before they are trusted: products of untrusted integers stick at the largest value instead of
// wrapping around.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <span>

namespace burin {

inline constexpr std::int64_t kSaturated = std::numeric_limits<std::int64_t>::max();

// Factors below 1 make the product 0.
constexpr std::int64_t saturating_product(std::span<const std::int64_t> factors) {
  for (const std::int64_t factor : factors) {
    if (factor < 1) return 0;
  }
  std::int64_t product = 1;
  for (const std::int64_t factor : factors) {
    if (product > kSaturated / factor) return kSaturated;
    product *= factor;
  }
  return product;
}
constexpr std::int64_t saturating_product(std::initializer_list<std::int64_t> factors) {
  return saturating_product(std::span(factors.begin(), factors.size()));
}

constexpr int saturate_to_int(std::int64_t value) {
  constexpr int kLargest = std::numeric_limits<int>::max();
  return value > kLargest ? kLargest : static_cast<int>(value);
}

// b > 0, a >= 0
constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

}  // namespace burin
