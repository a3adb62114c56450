// A program that launches one kernel by itself.
#pragma once

#include "ir/kernel.h"
#include "ir/program.h"

namespace burin {

// Named like the kernel's operator; the inputs are "NAME.input" and "NAME.residual", the output is "NAME.output", and
// activity maps are arguments as well. Throws Error(unsupported) for a kernel of a tensor that is part of another.
Program program_of(const Kernel& kernel, int batch);

}  // namespace burin
