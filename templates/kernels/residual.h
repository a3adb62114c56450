// The end of a sum with a residual, which is added before the function or behind it. A template defines residual_last()
// and apply() before it includes this.
#pragma once

#include "templates/device.h"

BURIN_DEVICE float end_of_sum(float sum, float residual) {
  return residual_last() ? apply(sum) + residual : apply(sum + residual);
}
