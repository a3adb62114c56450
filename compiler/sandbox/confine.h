// What a process may not do any more.
#pragma once

#include "compiler/sandbox/sandbox.h"

namespace burin {

inline constexpr int kSandboxChannel = 3;  // the file that a confined process may read and write

// `channel` becomes kSandboxChannel, and all other files of this process are closed. It has one thread, and from now on
// it may ask the system for memory, and end. Throws Error(unsupported) where the system does not do this.
void confine(int channel, const SandboxLimits& limits);

}  // namespace burin
