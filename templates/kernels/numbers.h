// What is known of single numbers by every template.
#pragma once

#include "../device.h"

constexpr float kInfinity = __builtin_inff();

BURIN_DEVICE float larger(float a, float b) { return __builtin_fmaxf(a, b); }
