// How a compiled kernel computes; the tolerance of its outputs follows from it.
#pragma once

#include "compiler/reference.h"
#include "ir/kernel.h"

namespace burin {

// All but longest_reduction, which the weights say. Throws Error(bad_input) where the plan that says it cannot be read.
Arithmetic arithmetic_of(const Kernel& kernel);

}  // namespace burin
