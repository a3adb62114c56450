// Machine code against what a package says of it: the driver reads a kernel's parameters from the host's memory as the
// machine code counts them, so code that counts others must not reach it.
#pragma once

#include <string_view>
#include <vector>

#include "ir/cubin_info.h"
#include "ir/kernel.h"

namespace burin {

// Those that a kernel of this form has: its tensors' addresses, its boxes, then the number of images (ir/kernel.h).
std::vector<CubinParameter> parameters_of(const KernelForm& form);
// Whether code that takes `found` is of this form. Where boxes begin, assemblers decide: they count from the beginning
// of a bank in which parameters are not the first.
bool are_parameters_of(const std::vector<CubinParameter>& found, const KernelForm& form);
std::string text_of(const std::vector<CubinParameter>& parameters);  // "8 + 8 + 4 bytes"; for messages

// `binary`: one of the kernel's, of which `cubin` is the content. Throws Error(bad_input) that names the file and says
// what is wrong: it is no cubin, it is for another architecture, it has not the kernel, or one that takes other
// parameters, other registers, more code or more static shared memory.
void check_cubin(const Kernel& kernel, const KernelBinary& binary, std::string_view cubin);

}  // namespace burin
