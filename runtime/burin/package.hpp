// What a package says of its kernels and its network: the types that manifest(), kernel(), shape() and step() return.
//
//   std::shared_ptr<const burin::Package> package = burin::open_package("model.burin");
//   for (const burin::Kernel& kernel : package->manifest.kernels) std::cout << kernel.symbol << '\n';
//
// These are the compiler's own types: their fields may change with any version. libburin_runtime.so exports what the
// other headers of this folder declare; functions of these types that are not inline are in the static library alone.
#pragma once

#include "ir/package/package.h"
#include "runtime.hpp"
