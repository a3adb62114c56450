// Packages for the tests: two kernels with all kinds of binaries, and two leftover tensors.
#pragma once

#include "ir/package/package.h"

namespace burin_test {

burin::Manifest sample_manifest();
burin::Package sample_package();

}  // namespace burin_test
