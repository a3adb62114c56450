// Functions of single numbers. What is applied to each result is said by the constants function(), alpha() and beta(),
// which a template defines before.
#pragma once

#include "element_functions.h"

// ir/operators.h's ElementFunction, counted from 1.
enum {
  kNoFunction,
  kRelu,
  kLeakyRelu,
  kSigmoid,
  kHardSigmoid,
  kHardSwish,
  kSilu,
  kClip,
  kElu,
  kCelu,
  kSoftplus,
  kSoftsign,
  kTanh,
  kErf,
  kGelu,
  kGeluTanh,
  kMish,
  kThresholdedRelu,
  kExp,
  kLog,
  kSqrt,
  kReciprocal,
  kPower,
  kAbsolute,
  kSign,
  kSine,
  kCosine,
  kFloor,
  kCeil,
  kRound,
  kQuantize,
  kWithin,
  kTangent,
  kSinh,
  kCosh,
  kAsin,
  kAcos,
  kAtan,
  kAsinh,
  kAcosh,
  kAtanh,
  kShrink,
  kUser
};

// A user's function, whose symbol stands in its place. It stays a call until the PTX is written.
BURIN_PRIMITIVE float burin_call_apply(float x) __attribute__((const));

// All but x are constants.
BURIN_DEVICE float apply(i32 function, float alpha, float beta, float x) {
  switch (function) {
    case kRelu:
      return x < 0 ? 0 : x;
    case kLeakyRelu:
      return x < 0 ? x * alpha : x;
    case kSigmoid:
      return sigmoid(x);
    case kHardSigmoid:
      return clamp(__builtin_fmaf(alpha, x, beta), 0, 1);
    case kHardSwish:
      return x * clamp(__builtin_fmaf(x, 1.0f / 6, 0.5f), 0, 1);
    case kSilu:
      return x * sigmoid(x);
    case kClip:
      return clamp(x, alpha, beta);
    case kElu:
      return x < 0 ? alpha * exp_less_one(x) : beta * x;
    case kCelu:
      return x < 0 ? alpha * exp_less_one(x * (1 / alpha)) : x;
    case kSoftplus:
      return softplus(x);
    case kSoftsign:
      return x * burin_dev_reciprocal(1 + magnitude(x));
    case kTanh:
      return hyperbolic_tangent(x);
    case kErf:
      return error_function(x);
    case kGelu:
      return x * normal_integral(x);
    case kGeluTanh:
      return gelu_by_tanh(x);
    case kMish:
      return mish(x);
    case kThresholdedRelu:
      return x > alpha ? x : 0;
    case kExp:
      return burin_dev_exp(x);
    case kLog:
      return burin_dev_log(x);
    case kSqrt:
      return burin_dev_sqrt(x);
    case kReciprocal:
      return burin_dev_reciprocal(x);
    case kPower:
      return power_of(x, alpha);
    case kAbsolute:
      return magnitude(x);
    case kSign:
      return x > 0 ? 1 : x < 0 ? -1 : 0;
    case kSine:
      return sine(x, 0);
    case kCosine:
      return sine(x, 1);
    case kFloor:
      return __builtin_floorf(x);
    case kCeil:
      return __builtin_ceilf(x);
    case kRound:
      return __builtin_rintf(x);
    case kQuantize:
      return clamp(__builtin_rintf(x * (1 / alpha)), beta, beta + 255) * alpha;
    case kWithin:
      return is_within(alpha, beta, x) ? 1 : 0;
    case kTangent:
      return tangent(x);
    case kSinh:
      return hyperbolic_sine(x);
    case kCosh:
      return hyperbolic_cosine(x);
    case kAsin:
      return arcsine(x);
    case kAcos:
      return arccosine(x);
    case kAtan:
      return arctangent(x);
    case kAsinh:
      return area_sine(x);
    case kAcosh:
      return area_cosine(x);
    case kAtanh:
      return area_tangent(x);
    case kShrink:
      return x < -alpha ? x + beta : x > alpha ? x - beta : 0;
    case kUser:
      return burin_call_apply(x);
    default:
      return x;
  }
}

BURIN_DEVICE float apply(float x) { return apply(function(), alpha(), beta(), x); }
BURIN_DEVICE f32x4 apply4(f32x4 x) { return {apply(x[0]), apply(x[1]), apply(x[2]), apply(x[3])}; }
