// Packages for the tests: two kernels of one layer with all kinds of binaries, the layer's weights, which both have in
// common, and three leftover tensors.
#pragma once

#include "ir/package/package.h"

namespace burin_test {

inline constexpr const char* kSampleLayerPath = "layers/0123456789abcdef0123456789abcdef.bin";

burin::Manifest sample_manifest();
burin::Package sample_package();

}  // namespace burin_test
