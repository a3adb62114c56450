// reduce: one number of each group of values of an image, then a function of it.
#define BURIN_TEMPLATE_DEF "compiler/providers/reduce/reduce.def"
#include "templates/kernels/function.h"
#include "templates/kernels/lane_groups.h"

// ir/operators.h's Statistic.
enum { kMean, kSum, kLargest, kSmallest, kProduct, kSumOfMagnitudes, kSumOfSquares, kLogSumExp };

BURIN_DEVICE float start() {
  switch (statistic()) {
    case kLargest:
      return -kInfinity;
    case kSmallest:
      return kInfinity;
    case kProduct:
      return 1;
    default:
      return 0;
  }
}
// Makes one of two parts of a group.
BURIN_DEVICE float both_parts(float a, float b) {
  switch (statistic()) {
    case kLargest:
      return larger(a, b);
    case kSmallest:
      return __builtin_fminf(a, b);
    case kProduct:
      return a * b;
    default:
      return a + b;
  }
}
BURIN_DEVICE float with_value(float result, float x) {
  switch (statistic()) {
    case kSumOfMagnitudes:
      return result + magnitude(x);
    case kSumOfSquares:
      return __builtin_fmaf(x, x, result);
    default:
      return both_parts(result, x);
  }
}

BURIN_DEVICE float statistic_of(const float* from, const Lane& at) {
  if (statistic() == kLogSumExp) {
    const float mine = over_values(from, at, -kInfinity, [](float a, float x) BURIN_INLINED { return larger(a, x); });
    const float largest = largest_over_lanes(mine, 0);
    const float sum =
        over_values(from, at, 0, [&](float a, float x) BURIN_INLINED { return a + burin_dev_exp(x - largest); });
    return largest + burin_dev_log(sum_over_lanes(sum, 1));
  }
  const float mine = over_values(from, at, start(), [](float a, float x) BURIN_INLINED { return with_value(a, x); });
  const float result = over_lanes(mine, 0, [](float a, float b) BURIN_INLINED { return both_parts(a, b); });
  return statistic() == kMean ? result * (1.0f / count()) : result;
}

BURIN_KERNEL void burin_kernel(const float* input, float* output, const float*, const float*, i32) {
  burin_dev_await_launch();
  const Lane at = locate_lane();
  const float result = statistic_of(input_of(input, first_image()), at);
  if (at.exists && at.lane == 0) {
    burin_dev_global_store(output_of(output, first_image()), bytes_of(at.group), apply(result));
  }
}
