// The text of a kernel's form, as a part of the plans that hold one.
#pragma once

#include <string>

#include "ir/kernel.h"
#include "ir/text.h"

namespace burin {

// "key: value" lines: the launch, then "tensor 0: input, f32 nchw 64x56x56, 200704 words" and so on.
std::string print(const KernelForm& form);

// Takes those lines. Throws Error(bad_input) naming the line.
KernelForm parse_kernel_form(KeyValueText& text);

}  // namespace burin
