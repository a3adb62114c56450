// What becomes of a value of a group that is normalized, as ir/operators.h says it, and how that follows from sums over
// the group: what the kernels of normalizations share.
#pragma once

#include "function.h"

// ir/operators.h's Normalization.
enum { kDeviation, kRootMeanSquare, kMagnitudes, kLength, kSoftmax, kLogSoftmax };

// What becomes of a value: (x - center) * factor, e^(x - center) * factor, or x - center - factor.
struct Change {
  float center, factor;
};

BURIN_DEVICE float reciprocal_or_zero(float x) { return x == 0 ? 0 : burin_dev_reciprocal(x); }

// A first pass over the group gives its center: the mean or the largest value, of others nothing.
BURIN_DEVICE bool has_center() {
  return normalization() == kDeviation || normalization() == kSoftmax || normalization() == kLogSoftmax;
}
BURIN_DEVICE bool center_is_largest() { return normalization() == kSoftmax || normalization() == kLogSoftmax; }
BURIN_DEVICE float center_start() { return center_is_largest() ? -kInfinity : 0; }
BURIN_DEVICE float center_of(float a, float b) { return center_is_largest() ? larger(a, b) : a + b; }

// A second one adds this up, from which the factor follows; `share` is one over the number of values.
BURIN_DEVICE float size_with(float sum, float x, float center) {
  switch (normalization()) {
    case kMagnitudes:
      return sum + magnitude(x);
    case kSoftmax:
    case kLogSoftmax:
      return sum + burin_dev_exp(x - center);
    default:
      return __builtin_fmaf(x - center, x - center, sum);
  }
}
BURIN_DEVICE float factor_of(float size, float share) {
  switch (normalization()) {
    case kDeviation:
    case kRootMeanSquare:
      return reciprocal_or_zero(burin_dev_sqrt(__builtin_fmaf(size, share, epsilon())));
    case kMagnitudes:
      return reciprocal_or_zero(size);
    case kLength:
      return reciprocal_or_zero(burin_dev_sqrt(size));
    case kLogSoftmax:
      return burin_dev_log(size);
    default:
      return burin_dev_reciprocal(size);
  }
}

BURIN_DEVICE float changed_by(float x, const Change& change) {
  if (normalization() == kSoftmax) return burin_dev_exp(x - change.center) * change.factor;
  if (normalization() == kLogSoftmax) return x - change.center - change.factor;
  return (x - change.center) * change.factor;
}
