// Numbers of a model while it is read: those that shapes and constants give. The number of images is a symbol, N, of
// which only N >= 1 is known.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace burin {

// value + per_image * N
template <typename T>
struct BatchNumber {
  T value = 0, per_image = 0;

  bool depends() const { return per_image != 0; }
  bool operator==(const BatchNumber&) const = default;
};

// "3", "N", "2 * N + 3"
template <typename T>
std::string number_text(const BatchNumber<T>& number) {
  if (!number.depends()) return fmt::format("{}", number.value);
  const std::string images = number.per_image == 1 ? "N" : fmt::format("{} * N", number.per_image);
  if (number.value == 0) return images;
  const std::string rest = fmt::format("{}", number.value);
  return number.value < 0 ? fmt::format("{} - {}", images, rest.substr(1)) : fmt::format("{} + {}", images, rest);
}

// A list of them.
template <typename T>
struct Numbers {
  std::vector<T> values;
  std::vector<T> per_image;  // empty when none depends on the number of images

  Numbers() = default;
  explicit Numbers(std::vector<T> all) : values(std::move(all)) {}

  std::size_t size() const { return values.size(); }
  bool depend() const { return !per_image.empty(); }
  BatchNumber<T> operator[](std::size_t i) const { return {values[i], per_image.empty() ? T{0} : per_image[i]}; }
  void reserve(std::size_t count) { values.reserve(count); }
  void push_back(const BatchNumber<T>& number) {
    const bool listed = !per_image.empty() || number.depends();
    if (listed) per_image.resize(values.size(), T{0});
    values.push_back(number.value);
    if (listed) per_image.push_back(number.per_image);
  }
};

// The signs that value + per_image * N can have for any N >= 1.
struct Signs {
  bool negative = false, zero = false, positive = false;

  bool none_but(bool may_be_negative, bool may_be_zero, bool may_be_positive) const {
    return (may_be_negative || !negative) && (may_be_zero || !zero) && (may_be_positive || !positive);
  }
};

template <typename T>
Signs signs_of(const BatchNumber<T>& number) {
  // That is one image's; numbers so large that their sum is none of 64 bits have one sign.
  T first = number.value;
  if constexpr (std::is_integral_v<T>) {
    if (__builtin_add_overflow(number.value, number.per_image, &first)) first = number.value;
  } else {
    first += number.per_image;
  }
  Signs signs{first < 0, first == 0, first > 0};
  if (number.per_image > 0) {
    signs.positive = true;
    signs.zero = signs.zero || first < 0;
  } else if (number.per_image < 0) {
    signs.negative = true;
    signs.zero = signs.zero || first > 0;
  }
  return signs;
}

}  // namespace burin
