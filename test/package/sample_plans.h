// Plans for kernels that are made by hand: legal ones, from which the form of a kernel follows as it does from a real
// one.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "ir/derive_form.h"
#include "ir/package/package.h"

namespace burin_test {

// What a baked plan is told; the rest follows from the layer.
struct SamplePlan {
  burin::PixelTile tile = {1, 14, 14};
  int groups = 1, splits = 1;  // splits are added up by the last block
  int cluster_tiles = 1;
  burin::Staging staging = burin::Staging::shared;  // bulk: a tile must be the whole image
  burin::Precision precision = burin::Precision::fp32;
  int batch = 1;
  std::int64_t output_image_words = 0;
  std::optional<burin::ActivityMap> skips = {};
  bool marks = false;
  int channel_pitch = 0;  // words; 0: as few as can be. Shared memory grows with it
};
burin::BakedPlan sample_plan(const burin::ConvShape& shape, const SamplePlan& wanted);

// A plan of a template without constants whose kernel has images as tensors: those of the layer, plain and in FP32.
burin::TemplatePlan sample_template(const std::string& name, const burin::ConvShape& shape);

// Images of whole words, one after the other. Of the roles input, output and residual.
burin::KernelTensor image_tensor(burin::TensorRole role, int channels, int rows, int cols,
                                 burin::TensorLayout layout = burin::TensorLayout::nchw,
                                 burin::ElementType element = burin::ElementType::f32);
// Words of which it is not said what they are.
burin::KernelTensor flat_tensor(burin::TensorRole role, std::int64_t words, int alignment = burin::kWordBytes);

// Give the kernel a plan and all that follows from it. Throw as derive_form() does.
void set_plan(burin::Kernel& kernel, const burin::BakedPlan& plan);
void set_plan(burin::Kernel& kernel, const burin::TemplatePlan& plan);
void edit_baked(burin::Kernel& kernel, const std::function<void(burin::BakedPlan&)>& edit);
void edit_template(burin::Kernel& kernel, const std::function<void(burin::TemplatePlan&)>& edit);

// "conv1_b8(input, output, residual, partials, counters, batch)": what stands for the code of a kernel. The fake driver
// takes the parameters of a launch by it.
std::string signature(const burin::Kernel& kernel);

// A cubin of the kernel, whose form is known by now, with these bytes for its code.
inline constexpr int kSampleRegisters = 40;
std::string cubin_of(const burin::Kernel& kernel, const std::string& code, const std::string& arch);

// Gives `kernel`, whose form is known by now, a binary, and puts its code into `package`. `beginning` stands before the
// signature in the code.
void add_code(burin::Package& package, burin::Kernel& kernel, burin::KernelBinary binary, const std::string& beginning);

}  // namespace burin_test
