// FactorType: what the factors of a convolution's products are, its inputs and its weights. Tensors may hold more
// digits than are multiplied: what is rounded is rounded to one of these.
#pragma once

#include <span>
#include <vector>

#include "ir/element_type.h"
#include "ir/named_enum.h"
#include "ir/precision.h"

namespace burin {

// The templates know them by their numbers (conv_gathered/steps.h).
enum class FactorType {
  f32,   // as they are
  f16,   // FP16
  bf16,  // BF16
  tf32,  // the range of FP32 with the 11 digits of FP16: a float whose last 13 bits are zero
};

// The names of the precisions that round to them.
constexpr EnumNames<4> names_of(FactorType) { return {"a type of factors", {"fp32", "fp16", "bf16", "tf32"}}; }

// That of values as tensors of this type hold them.
constexpr FactorType factors_of(ElementType element) {
  switch (element) {
    case ElementType::f16:
      return FactorType::f16;
    case ElementType::bf16:
      return FactorType::bf16;
    case ElementType::f32:
      break;
  }
  return FactorType::f32;
}

// What convolutions on FP32 tensors may round to. (FP16x2 adds up in halves, which only baked code does, on half
// tensors.)
constexpr FactorType factors_of(Precision precision) {
  switch (precision) {
    case Precision::fp16:
      return FactorType::f16;
    case Precision::bf16:
      return FactorType::bf16;
    case Precision::tf32:
      return FactorType::tf32;
    case Precision::fp32:
    case Precision::fp16x2:
      break;
  }
  return FactorType::f32;
}

// What fully connected layers may: their tensors are FP32 in any case.
constexpr FactorType linear_factors(Precision precision) {
  return is_half(precision) ? factors_of(precision) : FactorType::f32;
}

// The same where the tensors are those of the precision.
constexpr FactorType factors_of(Precision precision, ElementType element) {
  return element == ElementType::f32 ? factors_of(precision) : factors_of(element);
}

// Whether anything is rounded that FP32 keeps: tensors, or factors.
constexpr bool rounds(Precision precision) { return is_half(precision) || factors_of(precision) != FactorType::f32; }

// One factor has so many where it is multiplied.
constexpr int bytes_of(FactorType type) { return type == FactorType::f16 || type == FactorType::bf16 ? 2 : 4; }

// The distance from 1 to the next larger number.
double epsilon_of(FactorType type);

// The nearest value of the type, ties to even; what is too large becomes infinity, NaN stays NaN. f32: `value` itself.
float rounded(FactorType type, float value);
std::vector<float> rounded(FactorType type, std::span<const float> values);

}  // namespace burin
