// combine: a sum, a product or another function of two operands, then a function of it. The second is a tensor or among
// the weights, and may have one value for many of the first. A thread has `steps` pieces of one or four words, a
// block's width apart, which it loads before it stores any.
#define BURIN_TEMPLATE_DEF "compiler/providers/combine/combine.def"
#include "templates/kernels/function.h"
#include "templates/kernels/pieces.h"

// ir/operators.h's Combination.
enum {
  kAdd,
  kMultiply,
  kSubtract,
  kDivide,
  kPowerOf,
  kSmaller,
  kLarger,
  kPrelu,
  kEqual,
  kLess,
  kLessOrEqual,
  kKeep,
  kDrop,
  kRemainder,
  kUserCombination
};

// As burin_call_apply().
BURIN_PRIMITIVE float burin_call_combine(float a, float b) __attribute__((const));

// What is left of a position when the axis behind was taken out; of the first axis there is, nothing need be divided.
struct Position {
  u32 rest, word;
};
BURIN_DEVICE Position step_along(Position at, i32 extent, i32 step, bool first) {
  if (first) return {0, at.word + at.rest * step};
  return {at.rest / extent, at.word + at.rest % extent * step};
}
BURIN_DEVICE u32 other_word(u32 word) {
  const bool one = other_extent0() == 1, two = one && other_extent1() == 1, three = two && other_extent2() == 1;
  Position at = step_along({word, 0}, other_extent3(), other_step3(), three);
  if (!three) at = step_along(at, other_extent2(), other_step2(), two);
  if (!two) at = step_along(at, other_extent1(), other_step1(), one);
  if (!one) at = step_along(at, other_extent0(), other_step0(), true);
  return at.word;
}

BURIN_DEVICE f32x4 load_other(const float* other, u32 word) {
  // The words of a piece lie along the last axis.
  if (other_step3() != 0) return load(vector(), other, bytes_of(other_word(word)));
  const float value = burin_dev_global_load(other, bytes_of(other_word(word)));
  return {value, value, value, value};
}

BURIN_DEVICE float power_of_both(float base, float exponent) {
  const float size = burin_dev_power(magnitude(base), exponent);
  if (!(base < 0)) return size;
  if (exponent != __builtin_floorf(exponent)) return __builtin_nanf("");
  const float half = exponent * 0.5f;
  return half == __builtin_floorf(half) ? size : -size;
}

BURIN_DEVICE u32 exponent_of(float value) { return __builtin_bit_cast(u32, value) >> 23 & 0xFF; }
BURIN_DEVICE float power_of_two(u32 exponent) { return __builtin_bit_cast(float, (exponent + 127) << 23); }

// Exact: what is left of a is divided by b times a power of two, so that the quotient has few digits, until less than b
// is left. A quotient that was rounded to a neighbour is found by what is left.
BURIN_DEVICE float remainder_of(float a, float b) {
  constexpr u32 kQuotientDigits = 20;
  const float by = magnitude(b);
  float rest = magnitude(a);
  if (!(rest >= by)) return rest < by ? a : __builtin_nanf("");
#pragma nounroll
  while (rest >= by) {
    const u32 least = exponent_of(by) + kQuotientDigits, exponent = exponent_of(rest);
    const u32 shift = exponent > least ? exponent - least : 0;
    const float step = by * power_of_two(shift / 2) * power_of_two(shift - shift / 2);
    const float quotient = __builtin_floorf(rest * burin_dev_reciprocal(step));
    float left = __builtin_fmaf(-quotient, step, rest);
    if (left < 0) left = __builtin_fmaf(1 - quotient, step, rest);
    if (left >= step) left = __builtin_fmaf(-1 - quotient, step, rest);
    rest = left;
  }
  return a < 0 ? -rest : rest;
}

BURIN_DEVICE float combined(float a, float b) {
  switch (combination()) {
    case kAdd:
      return a + b;
    case kMultiply:
      return a * b;
    case kSubtract:
      return a - b;
    case kDivide:
      return a * burin_dev_reciprocal(b);
    case kPowerOf:
      return power_of_both(a, b);
    case kSmaller:
      return b < a ? b : a;
    case kLarger:
      return a < b ? b : a;
    case kEqual:
      return a == b ? 1 : 0;
    case kLess:
      return a < b ? 1 : 0;
    case kLessOrEqual:
      return a <= b ? 1 : 0;
    case kKeep:
      return b != 0 ? a : otherwise();
    case kDrop:
      return b == 0 ? a : otherwise();
    case kRemainder:
      return remainder_of(a, b);
    case kUserCombination:
      return burin_call_combine(a, b);
    default:
      return a < 0 ? a * b : a;
  }
}

BURIN_DEVICE f32x4 both(f32x4 a, f32x4 b) {
  f32x4 result;
#pragma unroll
  for (u32 i = 0; i < kQuadWords; ++i) result[i] = swapped() ? combined(b[i], a[i]) : combined(a[i], b[i]);
  return apply4(result);
}

BURIN_KERNEL void burin_kernel(const float* input, float* output, const float* other, const float* weights, i32) {
  burin_dev_await_launch();
  const float* from = input_of(input, first_image());
  const float* others = constant() ? weights : residual_of(other, first_image());
  float* to = output_of(output, first_image());
  f32x4 left[kMaxSteps], right[kMaxSteps];
  move_pieces(
      [&](i32 i, u32 word) BURIN_INLINED {
        left[i] = load(vector(), from, bytes_of(word));
        right[i] = load_other(others, word);
      },
      [&](i32 i, u32 word) BURIN_INLINED {
        const Values a = values_of(left[i], in_halves()), b = values_of(right[i], in_halves());
        const f32x4 made = words_of({both(a.first, b.first), both(a.second, b.second)}, out_halves());
        store(vector(), to, bytes_of(word), is_filling_word(word) ? f32x4{0, 0, 0, 0} : made);
      });
}
