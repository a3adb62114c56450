// Which of a kernel's binaries a device runs.
#pragma once

#include <string>

#include "ir/arch.h"
#include "ir/kernel.h"
#include "runtime/burin/runtime.hpp"

namespace burin {

// True when machine code for `arch` runs on the device: the same major version and no newer minor version; with the
// suffix 'a', exactly that version.
bool cubin_fits(const ArchName& arch, const DeviceInfo& device);
// True when the driver can compile PTX for `arch` to the device: it is no older; with a suffix, exactly that version
// ('a') or the same major version ('f').
bool ptx_fits(const ArchName& arch, const DeviceInfo& device);

// The cubin with the newest architecture that fits; without one, or with `force_jit`, the PTX. Throws Error(device)
// that names what the kernel was compiled for and what the device is.
const KernelBinary& select_binary(const Kernel& kernel, const DeviceInfo& device, bool force_jit);

// "compile it with --arch sm_89": what makes a package that the device can run.
std::string how_to_compile_for(const DeviceInfo& device);

}  // namespace burin
