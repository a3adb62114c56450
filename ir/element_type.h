// ElementType: what one value of a tensor is in memory, and the conversions between FP32 and the half types.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/named_enum.h"
#include "ir/precision.h"

namespace burin {

// Memory is counted in words; of the half types a word holds two values.
inline constexpr int kWordBytes = 4;

enum class ElementType { f32, f16, bf16 };

constexpr EnumNames<3> names_of(ElementType) { return {"an element type", {"f32", "f16", "bf16"}}; }

constexpr int bytes_of(ElementType type) { return type == ElementType::f32 ? 4 : 2; }
// Values that make a word.
constexpr int elements_per_word(ElementType type) { return kWordBytes / bytes_of(type); }

constexpr ElementType element_of(Precision precision) {
  switch (precision) {
    case Precision::fp32:
    case Precision::tf32:
      return ElementType::f32;
    case Precision::bf16:
      return ElementType::bf16;
    case Precision::fp16:
    case Precision::fp16x2:
      break;
  }
  return ElementType::f16;
}

// The precision whose results have this type, and whose sums and weights are FP32.
constexpr Precision precision_of(ElementType type) {
  return type == ElementType::f32 ? Precision::fp32 : type == ElementType::f16 ? Precision::fp16 : Precision::bf16;
}

// The distance from 1 to the next larger number.
double epsilon_of(ElementType type);
// The smallest positive number at all, and the largest finite one.
double smallest_of(ElementType type);
double largest_of(ElementType type);

// Rounds to the nearest, ties to even; what is too large becomes infinity, NaN stays NaN. `type` is a half.
std::uint16_t to_half(ElementType type, double value);
// This is exact.
float from_half(ElementType type, std::uint16_t bits);
// The nearest value that `type` can hold; f32: `value` itself.
float rounded(ElementType type, float value);
std::vector<float> rounded(ElementType type, std::span<const float> values);

// a * b + sum in FP16, rounded once.
std::uint16_t fma_f16(std::uint16_t a, std::uint16_t b, std::uint16_t sum);

// Values as 4-byte words, whose bits a float carries; nothing may compute with them. A word of a half type holds two
// values, the first in its low half. The number of values must be a whole number of words. f32: the values themselves.
std::vector<float> pack_words(ElementType type, std::span<const float> values);
std::vector<float> unpack_words(ElementType type, std::span<const float> words);

}  // namespace burin
