// The module of a kernel, made anew from what a package holds of it: so no package brings code for the host.
#pragma once

#include <functional>
#include <string>

#include "ir/package/package.h"

namespace burin {

// Bitcode is for the host executor. Throws Error(unsupported) for a kernel that a person edited, Error(bad_input) for
// one whose plan or weights in the package are not sound.
std::string rebuild_module(const Package& package, const Kernel& kernel);

}  // namespace burin
