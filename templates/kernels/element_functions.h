// Functions of single numbers, of the primitives and of plain arithmetic alone. They are accurate to a few units in the
// last place, near zero as well; what each may be off, compiler/element_functions.cpp says.
#pragma once

#include "numbers.h"

BURIN_DEVICE float clamp(float x, float low, float high) { return x < low ? low : x > high ? high : x; }
// Ends that are the least or the largest float are none.
BURIN_DEVICE bool is_within(float low, float high, float x) {
  return (x >= low || low == -__FLT_MAX__) && (x <= high || high == __FLT_MAX__);
}
BURIN_DEVICE float magnitude(float x) { return __builtin_fabsf(x); }
BURIN_DEVICE float with_sign_of(float size, float x) { return x < 0 ? -size : size; }
BURIN_DEVICE float sigmoid(float x) { return burin_dev_reciprocal(1 + burin_dev_exp(-x)); }

// first + second x + ..., of as many numbers as there are.
template <u32 kCount>
BURIN_DEVICE float polynomial(float x, const float (&numbers)[kCount]) {
  float result = numbers[kCount - 1];
#pragma unroll
  for (u32 i = 1; i < kCount; ++i) result = __builtin_fmaf(result, x, numbers[kCount - 1 - i]);
  return result;
}

// e^x - 1, which near zero would be the difference of like numbers.
BURIN_DEVICE float exp_less_one(float x) {
  constexpr float kSeries[] = {1, 1.0f / 2, 1.0f / 6, 1.0f / 24, 1.0f / 120, 1.0f / 720, 1.0f / 5040};
  if (magnitude(x) < 0.25f) return x * polynomial(x, kSeries);
  return burin_dev_exp(x) - 1;
}

// log(1 + x) for x from 0 to 1, as 2 artanh(x / (2 + x)).
BURIN_DEVICE float log_one_more(float x) {
  constexpr float kSeries[] = {2, 2.0f / 3, 2.0f / 5, 2.0f / 7, 2.0f / 9, 2.0f / 11, 2.0f / 13};
  const float s = x * burin_dev_reciprocal(2 + x);
  return s * polynomial(s * s, kSeries);
}

BURIN_DEVICE float softplus(float x) { return larger(x, 0) + log_one_more(burin_dev_exp(-magnitude(x))); }

BURIN_DEVICE float hyperbolic_tangent(float x) {
  constexpr float kSeries[] = {1, -1.0f / 3, 2.0f / 15, -17.0f / 315, 62.0f / 2835};
  if (magnitude(x) < 0.25f) return x * polynomial(x * x, kSeries);
  return with_sign_of(1 - 2 * burin_dev_reciprocal(burin_dev_exp(2 * magnitude(x)) + 1), x);
}

// 1 - erf(x) for x of zero and more: e^(-x^2) times a function that varies little, whose logarithm is a polynomial in
// 1 / (1 + x / 2), fitted at Chebyshev's points.
BURIN_DEVICE float complementary_error_function(float x) {
  constexpr float kFitted[] = {-1.265468716621399f,   0.9990603923797607f,   0.38292455673217773f, 0.05253269895911217f,
                               -0.05186151713132858f, 0.020350491628050804f, -0.8185365796089172f, 1.2489850521087646f,
                               -0.7201575636863708f,  0.1521712839603424f};
  const float t = burin_dev_reciprocal(__builtin_fmaf(x, 0.5f, 1));
  return t * burin_dev_exp(__builtin_fmaf(-x, x, polynomial(t, kFitted)));
}
BURIN_DEVICE float error_function(float x) {
  constexpr float kFitted[] = {1.1283791065216064f,    -0.37612348794937134f, 0.11280364543199539f,
                               -0.026716385036706924f, 0.004923277534544468f, -0.0005654105916619301f};
  if (magnitude(x) < 1) return x * polynomial(x * x, kFitted);
  return with_sign_of(1 - complementary_error_function(magnitude(x)), x);
}
// The integral of the normal distribution, up to x.
BURIN_DEVICE float normal_integral(float x) {
  constexpr float kRootOfHalf = 0.70710678f;
  const float beyond = 0.5f * complementary_error_function(magnitude(x) * kRootOfHalf);
  return x < 0 ? beyond : 1 - beyond;
}

// x / 2 (1 + tanh(u)) is x sigmoid(2 u).
BURIN_DEVICE float gelu_by_tanh(float x) {
  constexpr float kFactor = 0.79788456f, kCube = 0.044715f;
  return x * sigmoid(2 * kFactor * x * __builtin_fmaf(kCube * x, x, 1));
}

// tanh(log(1 + e^x)) as a quotient of polynomials in e^x; beyond the limit it is 1.
BURIN_DEVICE float mish(float x) {
  constexpr float kLimit = 20;
  const float e = burin_dev_exp(x < kLimit ? x : kLimit), both = e * (e + 2);
  return x * both * burin_dev_reciprocal(both + 2);
}

// The exponent is as a rule a constant, so that all but one of these go.
BURIN_DEVICE float power_of(float x, float exponent) {
  if (exponent == 2) return x * x;
  if (exponent == 3) return x * x * x;
  if (exponent == 4) return (x * x) * (x * x);
  if (exponent == 0.5f) return burin_dev_sqrt(x);
  const float size = burin_dev_power(magnitude(x), exponent);
  if (!(x < 0)) return size;
  if (exponent != __builtin_floorf(exponent)) return __builtin_nanf("");
  const float half = exponent * 0.5f;
  return half == __builtin_floorf(half) ? size : -size;
}

// The sine of x + `quarters` right angles. What is left of x beside the nearest number of right angles is computed with
// one that is given in three parts.
BURIN_DEVICE float sine(float x, i32 quarters) {
  constexpr float kAngles = 0.63661977f, kFirst = 1.5707963f, kSecond = -4.3711388e-8f, kThird = -1.7151245e-15f;
  constexpr float kSine[] = {1, -1.0f / 6, 1.0f / 120, -1.0f / 5040, 1.0f / 362880};
  constexpr float kCosine[] = {1, -1.0f / 2, 1.0f / 24, -1.0f / 720, 1.0f / 40320, -1.0f / 3628800};
  constexpr float kMostAngles = 1e9f;  // that a whole number holds
  const float angles = clamp(__builtin_rintf(x * kAngles), -kMostAngles, kMostAngles);
  float rest = __builtin_fmaf(-angles, kFirst, x);
  rest = __builtin_fmaf(-angles, kSecond, rest);
  rest = __builtin_fmaf(-angles, kThird, rest);
  const u32 turns = static_cast<u32>(static_cast<i32>(angles) + quarters);
  const float square = rest * rest;
  const float value = turns % 2 == 0 ? rest * polynomial(square, kSine) : polynomial(square, kCosine);
  return turns / 2 % 2 == 0 ? value : -value;
}

BURIN_DEVICE float tangent(float x) { return sine(x, 0) * burin_dev_reciprocal(sine(x, 1)); }

// Half of e^|x|, by two factors: the hyperbolic functions are finite where e^|x| is none any more.
BURIN_DEVICE float half_exp(float x) {
  const float root = burin_dev_exp(0.5f * magnitude(x));
  return 0.5f * root * root;
}
BURIN_DEVICE float hyperbolic_sine(float x) {
  constexpr float kSeries[] = {1, 1.0f / 6, 1.0f / 120, 1.0f / 5040, 1.0f / 362880};
  if (magnitude(x) < 1) return x * polynomial(x * x, kSeries);
  const float half = half_exp(x);
  return with_sign_of(half - 0.25f * burin_dev_reciprocal(half), x);
}
BURIN_DEVICE float hyperbolic_cosine(float x) {
  const float half = half_exp(x);
  return half + 0.25f * burin_dev_reciprocal(half);
}

constexpr float kRightAngle = 1.5707963f;

// For x of -1 / 2 to 1 / 2, fitted at Chebyshev's points.
BURIN_DEVICE float arcsine_of_half(float x) {
  constexpr float kFitted[] = {1, 0.16666786f, 0.07494535f, 0.04553901f, 0.023909364f, 0.0425536f};
  return x * polynomial(x * x, kFitted);
}
// The angle whose cosine is x of 1 / 2 and more, by its half; beyond 1 there is none.
BURIN_DEVICE float angle_of_large(float x) { return 2 * arcsine_of_half(burin_dev_sqrt(0.5f * (1 - x))); }
BURIN_DEVICE float arcsine(float x) {
  if (magnitude(x) < 0.5f) return arcsine_of_half(x);
  return with_sign_of(kRightAngle - angle_of_large(magnitude(x)), x);
}
BURIN_DEVICE float arccosine(float x) {
  if (magnitude(x) < 0.5f) return kRightAngle - arcsine_of_half(x);
  const float angle = angle_of_large(magnitude(x));
  return x < 0 ? 2 * kRightAngle - angle : angle;
}

// What is at most tan(pi / 8) was fitted at Chebyshev's points; the rest is that beside a half or a whole right angle.
BURIN_DEVICE float arctangent(float x) {
  constexpr float kFitted[] = {1, -0.33333308f, 0.19998209f, -0.14239964f, 0.10572671f, -0.06032873f};
  constexpr float kEighth = 0.41421356f;
  const float size = magnitude(x), small = size > 1 ? burin_dev_reciprocal(size) : size;
  const float rest = small > kEighth ? (small - 1) * burin_dev_reciprocal(small + 1) : small;
  float angle = rest * polynomial(rest * rest, kFitted);
  if (small > kEighth) angle += 0.5f * kRightAngle;
  return with_sign_of(size > 1 ? kRightAngle - angle : angle, x);
}

// The inverse hyperbolic functions are logarithms; near zero, and near one, of one and a little more.
constexpr float kLogOfTwo = 0.69314718f, kLargeArea = 1e4f;
BURIN_DEVICE float area_sine(float x) {
  const float size = magnitude(x), square = size * size;
  if (size < 0.75f) {
    return with_sign_of(log_one_more(size + square * burin_dev_reciprocal(1 + burin_dev_sqrt(1 + square))), x);
  }
  if (size > kLargeArea) return with_sign_of(burin_dev_log(size) + kLogOfTwo, x);
  return with_sign_of(burin_dev_log(size + burin_dev_sqrt(square + 1)), x);
}
BURIN_DEVICE float area_cosine(float x) {
  if (!(x >= 1)) return __builtin_nanf("");
  const float more = x - 1, root = burin_dev_sqrt(more * (more + 2));
  if (more < 0.25f) return log_one_more(more + root);
  return x > kLargeArea ? burin_dev_log(x) + kLogOfTwo : burin_dev_log(x + root);
}
BURIN_DEVICE float area_tangent(float x) {
  const float size = magnitude(x), quotient = burin_dev_reciprocal(1 - size);
  const float twice = size < 1.0f / 3 ? log_one_more(2 * size * quotient) : burin_dev_log((1 + size) * quotient);
  return with_sign_of(0.5f * twice, x);
}
