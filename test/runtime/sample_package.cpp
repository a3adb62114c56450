#include "test/runtime/sample_package.h"

#include "test/package/sample_plans.h"

using namespace burin;

namespace burin_test {
namespace {

constexpr int kChannelPitch = 6242;  // words: four of them and the reserve are 100000 bytes

Kernel without_plan(const std::string& layer, int planned_batch) {
  Kernel kernel;
  kernel.op = layer;
  kernel.kind = "convolution";
  kernel.symbol = layer + "_b" + std::to_string(planned_batch);
  ConvShape& shape = kernel.layer.emplace().shape;
  shape.in_channels = 8;
  shape.out_channels = 16;
  shape.kernel_h = shape.kernel_w = 3;
  shape.pad = {1, 1, 1, 1};
  shape.in_h = shape.in_w = 14;
  kernel.layer->nonzeros = 100;
  kernel.source_hash = "0123456789abcdef";
  return kernel;
}

void add_all_code(Package& package, Kernel& kernel, const SampleCode& code) {
  const auto add = [&](BinaryKind kind, const std::string& arch) {
    const bool is_ptx = kind == BinaryKind::ptx;
    const std::string path = "kernels/" + kernel.symbol + "." + arch + (is_ptx ? ".ptx" : ".cubin");
    add_code(package, kernel, {.kind = kind, .arch = arch, .path = path},
             (is_ptx ? ".version 8.0 .target " : "machine code for ") + arch + " of ");
  };
  for (const std::string& arch : code.ptx) add(BinaryKind::ptx, arch);
  for (const std::string& arch : code.cubins) add(BinaryKind::cubin, arch);
}

}  // namespace

Kernel sample_kernel(const std::string& layer, int planned_batch) {
  Kernel kernel = without_plan(layer, planned_batch);
  SamplePlan wanted{.tile = {1, 7, 7}, .groups = 2, .splits = 2, .batch = planned_batch};
  wanted.channel_pitch = kChannelPitch;
  set_plan(kernel, sample_plan(kernel.layer->shape, wanted));
  return kernel;
}

Kernel sample_template_kernel(const std::string& layer) {
  Kernel kernel = without_plan(layer, 4);
  kernel.planned_batch = 4;
  kernel.layer->shape.epilogue.residual = true;
  TemplatePlan plan = sample_template("conv_any", kernel.layer->shape);
  plan.launch().threads = 64;
  plan.launch().tiles_per_image = 4;
  set_plan(kernel, plan);
  return kernel;
}

Kernel sample_box_kernel(const std::string& layer) {
  Kernel kernel = without_plan(layer, 4);
  kernel.planned_batch = 4;
  const ConvShape& shape = kernel.layer->shape;
  TemplatePlan plan = sample_template("conv_any", shape);
  for (KernelTensor* tensor : {&plan.input(), &plan.output()}) {
    *tensor = image_tensor(tensor->role, tensor->channels, tensor->rows, tensor->cols, TensorLayout::n8c8hw,
                           ElementType::f16);
  }
  plan.launch().threads = 64;
  plan.launch().tile_images = 8;
  plan.form.boxes = {{.image_rows = shape.in_h, .image_cols = shape.in_w, .octets = 1, .rows = 3, .cols = 16}};
  set_plan(kernel, plan);
  return kernel;
}

std::shared_ptr<Package> sample_package(const SampleCode& code, const EditKernels& edit) {
  auto package = std::make_shared<Package>();
  package->manifest.tool_version = "0.1.0";
  package->manifest.source = "sample.safetensors";
  std::vector<Kernel>& kernels = package->manifest.kernels;
  for (const int batch : {1, 8, 32}) kernels.push_back(sample_kernel("conv1", batch));
  kernels.push_back(sample_template_kernel("conv2"));
  if (edit) edit(kernels);
  for (Kernel& kernel : kernels) add_all_code(*package, kernel, code);
  return package;
}

std::shared_ptr<Package> half_sample_package(Precision precision, const EditKernels& edit) {
  return sample_package({}, [&](std::vector<Kernel>& kernels) {
    for (Kernel& kernel : kernels) {
      const ConvShape& shape = kernel.layer->shape;
      if (kernel.provider == kBakedProvider) {
        set_plan(
            kernel,
            sample_plan(
                shape,
                {.tile = {1, 7, 7}, .groups = 2, .splits = 2, .precision = precision, .batch = kernel.planned_batch}));
        continue;
      }
      kernel.precision = to_string(precision);
      edit_template(kernel, [&](TemplatePlan& plan) {
        for (KernelTensor* tensor : {&plan.input(), &plan.output(), &plan.residual()}) {
          *tensor = image_tensor(tensor->role, tensor->channels, tensor->rows, tensor->cols, TensorLayout::n2chw,
                                 element_of(precision));
        }
        plan.launch().tile_images = 2;
      });
    }
    if (edit) edit(kernels);
  });
}

}  // namespace burin_test
