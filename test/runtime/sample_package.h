// Packages for the runtime's tests, made in memory. Their code is text that the fake driver takes for code.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ir/package/package.h"
#include "ir/precision.h"

namespace burin_test {

// A kernel of `layer` for `planned_batch`: 3x3, 8x14x14 -> 16x14x14, two slices, tiles of one image's quarter, partial
// sums and two counters per tile. Its symbol is LAYER_bPLANNED.
burin::KernelRecord sample_kernel(const std::string& layer, int planned_batch);

// Gives `record` a binary and puts its code into `package`; arch "sm_90" or "compute_75" decides nothing, `kind` does.
void add_binary(burin::Package& package, burin::KernelRecord& record, burin::BinaryKind kind, const std::string& arch);

// The arch names of cubins and PTX, for each kernel.
struct SampleCode {
  std::vector<std::string> cubins = {"sm_80", "sm_90"};
  std::vector<std::string> ptx = {"sm_75"};
};

// Layers "conv1" (planned for 1, 8 and 32 images) and "conv2" (planned for 4 and without scratch memory, with
// residual).
std::shared_ptr<burin::Package> sample_package(const SampleCode& code = {});

// The same with tensors of a half precision: two images to a word, and to a tile.
std::shared_ptr<burin::Package> half_sample_package(burin::Precision precision);

}  // namespace burin_test
