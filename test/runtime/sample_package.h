// Packages for the runtime's tests, made in memory. Their code is text that the fake driver takes for code.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ir/package/package.h"
#include "ir/precision.h"

namespace burin_test {

// A baked kernel of `layer` for `planned_batch`: 3x3, 8x14x14 -> 16x14x14, two groups and two splits, tiles of one
// image's quarter, partial sums and two counters per tile. Its symbol is LAYER_bPLANNED.
burin::Kernel sample_kernel(const std::string& layer, int planned_batch);

// A template's kernel of the same layer with a residual: without scratch memory, for all batches alike. Its symbol is
// LAYER_b4, though it is said to be planned for 4 images.
burin::Kernel sample_template_kernel(const std::string& layer);

// The same for halves in n8c8hw, whose input is copied as boxes of one octet, 3x16 pixels.
burin::Kernel sample_box_kernel(const std::string& layer);

// The arch names of cubins and PTX, for each kernel.
struct SampleCode {
  std::vector<std::string> cubins = {"sm_80", "sm_90"};
  std::vector<std::string> ptx = {"sm_75"};
};

// Layers "conv1" (baked kernels for 1, 8 and 32 images) and "conv2" (a template's kernel). `edit` is applied to the
// kernels before they get their code.
using EditKernels = std::function<void(std::vector<burin::Kernel>&)>;
std::shared_ptr<burin::Package> sample_package(const SampleCode& code = {}, const EditKernels& edit = {});

// The same with tensors of a half precision: two images to a word, and to a tile.
std::shared_ptr<burin::Package> half_sample_package(burin::Precision precision, const EditKernels& edit = {});

}  // namespace burin_test
