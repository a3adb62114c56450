#include "ir/factor_type.h"

#include <bit>
#include <cmath>
#include <cstdint>

namespace burin {
namespace {

constexpr int kTf32Fraction = 10, kDroppedBits = 13;  // behind the leading one, and of a float's 23

// What rounding carries goes into the exponent, from the largest number to infinity.
float to_tf32(float value) {
  if (!std::isfinite(value)) return value;
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t odd = bits >> kDroppedBits & 1, half = std::uint32_t{1} << (kDroppedBits - 1);
  return std::bit_cast<float>((bits + half - 1 + odd) >> kDroppedBits << kDroppedBits);
}

ElementType element_of(FactorType type) {
  return type == FactorType::f16 ? ElementType::f16 : type == FactorType::bf16 ? ElementType::bf16 : ElementType::f32;
}

}  // namespace

double epsilon_of(FactorType type) {
  return type == FactorType::tf32 ? std::ldexp(1.0, -kTf32Fraction) : epsilon_of(element_of(type));
}

float rounded(FactorType type, float value) {
  return type == FactorType::tf32 ? to_tf32(value) : rounded(element_of(type), value);
}

std::vector<float> rounded(FactorType type, std::span<const float> values) {
  std::vector<float> result(values.begin(), values.end());
  for (float& value : result) value = rounded(type, value);
  return result;
}

}  // namespace burin
