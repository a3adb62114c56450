// A kernel by hand that follows the launch contract of ir/kernel.h, for tests on a real device: output = input + input.
// Two slices write partial sums, the last one to arrive adds them, counters are left zero.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ir/package/package.h"

namespace burin_test {

inline constexpr int kDoubleHeight = 4, kDoubleWidth = 8;
inline constexpr int kDoublePixels = kDoubleHeight * kDoubleWidth;

// One block of 32 threads for each image and slice.
std::string double_ptx();
// What a package says of it, with that PTX for `arch`; puts the code into the package.
void add_double_kernel(burin::Package& package, const std::string& arch = "sm_75",
                       const std::string& ptx = double_ptx());

// Why a test on a device cannot run; empty: it can.
std::string missing_device();

// Images of rising values.
std::vector<float> ramp(int batch, float start);

}  // namespace burin_test
