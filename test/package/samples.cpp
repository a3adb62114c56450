#include "test/package/samples.h"

#include "ir/layer_data.h"
#include "test/package/sample_plans.h"

namespace burin_test {
namespace {

using namespace burin;

constexpr int kSampleChannels = 8, kSampleNonzeros = 59, kDeadInputs = 1, kDeadOutputs = 2;

Kernel sample_kernel(const std::string& name, int batch) {
  Kernel kernel;
  kernel.symbol = "burin_" + name + "_b" + std::to_string(batch);
  kernel.op = "features." + name;
  kernel.kind = "convolution";
  KernelLayer& layer = kernel.layer.emplace();
  layer.shape.in_channels = layer.shape.out_channels = kSampleChannels;
  layer.shape.kernel_h = layer.shape.kernel_w = 3;
  layer.shape.pad = {.top = 1, .bottom = 1, .left = 0, .right = 2};
  layer.shape.in_h = layer.shape.in_w = 14;
  layer.shape.epilogue = {.bias = true, .residual = true, .function = function_of(Activation::leaky_relu, 0.1F)};
  layer.nonzeros = kSampleNonzeros;
  layer.dead_inputs = kDeadInputs;
  layer.dead_outputs = kDeadOutputs;
  layer.data = kSampleLayerPath;
  kernel.predicted_us = 12.345;
  kernel.source_hash = "0123456789abcdef";
  set_plan(kernel, sample_plan(layer.shape, {.splits = 2, .cluster_tiles = 2, .batch = batch}));
  return kernel;
}

// Weights that the numbers of sample_kernel() are true of, spread over the channels that live.
ConvLayer sample_layer(const Kernel& kernel) {
  ConvLayer layer{kernel.op, kernel.layer->shape, {}, {}};
  int lives = 0, nonzeros = 0;
  for (int k = 0; k < kSampleChannels; ++k) {
    layer.bias.push_back(static_cast<float>(k) / 8);
    for (int c = 0; c < kSampleChannels; ++c) {
      const bool dead = c >= kSampleChannels - kDeadInputs || k >= kSampleChannels - kDeadOutputs;
      for (int i = 0; i < layer.shape.kernel_h * layer.shape.kernel_w; ++i) {
        const bool zero = dead || lives++ % 6 != 0 || nonzeros == kSampleNonzeros;
        layer.weights.push_back(zero ? 0.0F : 0.25F * static_cast<float>(++nonzeros));
      }
    }
  }
  return layer;
}

void add_binary(Package& package, Kernel& kernel, KernelBinary binary, std::string content) {
  binary.bytes = static_cast<std::int64_t>(content.size());
  package.files[binary.path] = std::move(content);
  kernel.binaries.push_back(std::move(binary));
}

}  // namespace

Package sample_package() {
  Package package;
  package.manifest.tool_version = "0.1.0";
  package.manifest.source = "weights.safetensors";
  package.manifest.zero_threshold = 1e-6F;
  for (const int batch : {1, 32}) {
    Kernel kernel = sample_kernel("3", batch);
    const std::string base = "kernels/" + kernel.symbol;
    add_binary(package, kernel, {.kind = BinaryKind::ptx, .arch = "sm_75", .path = base + ".ptx"},
               ".version 6.3\n.target sm_75\n// batch " + std::to_string(batch) + "\n");
    add_binary(package, kernel,
               {.kind = BinaryKind::cubin,
                .arch = "sm_90",
                .path = base + ".sm_90.cubin",
                .registers = kSampleRegisters,
                .spill_bytes = 0,
                .stack_bytes = 0,
                .code_bytes = 100},
               cubin_of(kernel, std::string(100, static_cast<char>(batch)), "sm_90"));
    package.files[kSampleLayerPath] = encode_layer(sample_layer(kernel));
    package.manifest.kernels.push_back(kernel);
  }
  package.manifest.tensors = {{.name = "fc.weight", .path = "tensors/0.f32", .shape = {2, 3}},
                              {.name = "none", .path = "tensors/1.f32", .shape = {0, 5}},
                              {.name = "scalar", .path = "tensors/2.f32", .shape = {}}};
  package.files["tensors/0.f32"] = std::string(24, '\1');
  package.files["tensors/1.f32"] = "";
  package.files["tensors/2.f32"] = std::string(4, '\2');
  return package;
}

Manifest sample_manifest() { return sample_package().manifest; }

}  // namespace burin_test
