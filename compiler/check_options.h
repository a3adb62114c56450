// Options that contradict each other or the network.
#pragma once

#include "compiler/options.h"
#include "ir/network.h"

namespace burin {

// Throws Error(usage) or Error(unsupported), before any work has begun.
void check_options(const Network& network, const CompileOptions& options);

}  // namespace burin
