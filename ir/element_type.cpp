#include "ir/element_type.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <limits>

#include "ir/error.h"
#include "ir/parallel_for.h"

namespace burin {
namespace {

struct HalfFormat {
  int fraction_bits = 0;  // behind the leading one
  int exponent_bits = 0;
  double smallest_normal = 0;
  double smallest = 0;         // the unit of the subnormal numbers
  double first_too_large = 0;  // the next power of two behind the largest number

  constexpr int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  constexpr std::uint16_t infinity() const {
    return static_cast<std::uint16_t>(((1 << exponent_bits) - 1) << fraction_bits);
  }
};

constexpr HalfFormat kF16 = {10, 5, 0x1p-14, 0x1p-24, 0x1p16}, kBf16 = {7, 8, 0x1p-126, 0x1p-133, 0x1p128};
constexpr std::uint16_t kSign = 0x8000;
constexpr int kHalfBits = 16;
constexpr int kFloatFraction = 23, kFloatExponentBits = 8, kFloatBias = 127;
constexpr int kDoubleFraction = 52, kDoubleBias = 1023;

const HalfFormat& format_of(ElementType type) {
  BURIN_CHECK(type != ElementType::f32, "{} is no half", to_string(type));
  return type == ElementType::f16 ? kF16 : kBf16;
}

// work(i) for each i of 0..count; on several cores where there are many.
template <typename Work>
void for_each_of_many(std::size_t count, const Work& work) {
  constexpr std::size_t kPiece = std::size_t{1} << 16;
  const std::size_t pieces = (count + kPiece - 1) / kPiece;
  parallel_for(static_cast<int>(pieces), static_cast<double>(count), [&](int piece) {
    const std::size_t begin = static_cast<std::size_t>(piece) * kPiece;
    for (std::size_t i = begin; i < std::min(count, begin + kPiece); ++i) work(i);
  });
}

}  // namespace

double epsilon_of(ElementType type) {
  if (type == ElementType::f32) return std::numeric_limits<float>::epsilon();
  return std::ldexp(1.0, -format_of(type).fraction_bits);
}

double smallest_of(ElementType type) {
  return type == ElementType::f32 ? std::numeric_limits<float>::denorm_min() : format_of(type).smallest;
}

double largest_of(ElementType type) {
  if (type == ElementType::f32) return std::numeric_limits<float>::max();
  return from_half(type, static_cast<std::uint16_t>(format_of(type).infinity() - 1));
}

std::uint16_t to_half(ElementType type, double value) {
  const HalfFormat& format = format_of(type);
  const std::uint16_t sign = std::signbit(value) ? kSign : 0;
  if (std::isnan(value)) {
    const int quiet = 1 << (format.fraction_bits - 1);
    return static_cast<std::uint16_t>(sign | format.infinity() | quiet);
  }
  const double size = std::abs(value);
  if (size >= format.first_too_large) return static_cast<std::uint16_t>(sign | format.infinity());
  // The default rounding of nearbyint is to nearest, ties to even.
  if (size < format.smallest_normal) {
    return static_cast<std::uint16_t>(sign | static_cast<int>(std::nearbyint(size / format.smallest)));
  }
  const auto bits = std::bit_cast<std::uint64_t>(size);
  const int dropped = kDoubleFraction - format.fraction_bits;
  const std::uint64_t odd = bits >> dropped & 1, half = std::uint64_t{1} << (dropped - 1);
  // What rounding carries goes into the exponent, from the largest number to infinity.
  const std::uint64_t rounded = (bits + half - 1 + odd) >> dropped;
  const std::uint64_t rebias = static_cast<std::uint64_t>(kDoubleBias - format.bias()) << format.fraction_bits;
  return static_cast<std::uint16_t>(sign | (rounded - rebias));
}

float from_half(ElementType type, std::uint16_t bits) {
  constexpr int kShift = kFloatFraction - kF16.fraction_bits;
  constexpr std::uint32_t kFloatInfinity = ((1U << kFloatExponentBits) - 1) << kFloatFraction;
  // A power of two corrects the exponent; that of a number too small for its format to be normal as well.
  constexpr auto kCorrection =
      std::bit_cast<float>(static_cast<std::uint32_t>(2 * kFloatBias - kF16.bias()) << kFloatFraction);
  BURIN_CHECK(type != ElementType::f32, "{} is no half", to_string(type));
  if (type == ElementType::bf16) return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << kHalfBits);
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & kSign) << kHalfBits;
  const std::uint32_t rest = (bits & ~static_cast<std::uint32_t>(kSign)) << kShift;
  constexpr std::uint32_t kInfinity = static_cast<std::uint32_t>(kF16.infinity()) << kShift;
  if (rest >= kInfinity) return std::bit_cast<float>(sign | kFloatInfinity | rest);  // NaN with its digits, too
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(std::bit_cast<float>(rest) * kCorrection));
}

float rounded(ElementType type, float value) {
  return type == ElementType::f32 ? value : from_half(type, to_half(type, value));
}

std::vector<float> rounded(ElementType type, std::span<const float> values) {
  std::vector<float> result(values.begin(), values.end());
  if (type == ElementType::f32) return result;
  for_each_of_many(result.size(), [&](std::size_t i) { result[i] = rounded(type, result[i]); });
  return result;
}

std::uint16_t fma_f16(std::uint16_t a, std::uint16_t b, std::uint16_t sum) {
  const auto value = [](std::uint16_t bits) { return static_cast<double>(from_half(ElementType::f16, bits)); };
  // The product has at most 22 digits and is exact. So is the sum, unless it is so near to `sum` that it rounds to it.
  return to_half(ElementType::f16, value(a) * value(b) + value(sum));
}

std::vector<float> pack_words(ElementType type, std::span<const float> values) {
  if (type == ElementType::f32) return {values.begin(), values.end()};
  BURIN_CHECK(values.size() % 2 == 0, "{} values of {} are no whole words", values.size(), to_string(type));
  std::vector<float> words(values.size() / 2);
  for_each_of_many(words.size(), [&](std::size_t i) {
    const std::uint32_t low = to_half(type, values[2 * i]), high = to_half(type, values[2 * i + 1]);
    words[i] = std::bit_cast<float>(high << kHalfBits | low);
  });
  return words;
}

std::vector<float> unpack_words(ElementType type, std::span<const float> words) {
  if (type == ElementType::f32) return {words.begin(), words.end()};
  std::vector<float> values(words.size() * 2);
  for_each_of_many(words.size(), [&](std::size_t i) {
    const auto word = std::bit_cast<std::uint32_t>(words[i]);
    values[2 * i] = from_half(type, static_cast<std::uint16_t>(word));
    values[2 * i + 1] = from_half(type, static_cast<std::uint16_t>(word >> kHalfBits));
  });
  return values;
}

}  // namespace burin
