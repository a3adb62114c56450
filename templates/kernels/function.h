// What is applied to each result, by the constants of function.def.
#pragma once

#include "template_kernel.h"

// ir/operators.h's ElementFunction, counted from 1.
enum { kNoFunction, kRelu, kLeakyRelu, kSigmoid, kHardSigmoid, kHardSwish, kSilu, kClip };

BURIN_DEVICE float clamp(float x, float low, float high) { return x < low ? low : x > high ? high : x; }
BURIN_DEVICE float sigmoid(float x) { return burin_dev_reciprocal(1 + burin_dev_exp(-x)); }

BURIN_DEVICE float apply(float x) {
  switch (function()) {
    case kRelu:
      return x < 0 ? 0 : x;
    case kLeakyRelu:
      return x < 0 ? x * alpha() : x;
    case kSigmoid:
      return sigmoid(x);
    case kHardSigmoid:
      return clamp(__builtin_fmaf(alpha(), x, beta()), 0, 1);
    case kHardSwish:
      return x * clamp(__builtin_fmaf(x, 1.0f / 6, 0.5f), 0, 1);
    case kSilu:
      return x * sigmoid(x);
    case kClip:
      return clamp(x, alpha(), beta());
    default:
      return x;
  }
}

BURIN_DEVICE f32x4 apply4(f32x4 x) { return {apply(x[0]), apply(x[1]), apply(x[2]), apply(x[3])}; }
