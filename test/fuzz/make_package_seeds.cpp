// Writes the seeds of fuzz_package into a folder: make_package_seeds seeds/package. Whoever changes the format of
// packages runs it again.
#include <filesystem>
#include <fstream>
#include <iostream>

#include "ir/error.h"
#include "test/package/sample_network.h"
#include "test/package/sample_plans.h"
#include "test/package/samples.h"

using namespace burin;
using namespace burin_test;

namespace {

// A short text mutates better.
std::string without_comments(const std::string& plan) {
  std::string text;
  for (std::size_t begin = 0; begin < plan.size();) {
    const std::size_t end = std::min(plan.find('\n', begin), plan.size());
    std::string line = plan.substr(begin, end - begin);
    line.resize(std::min(line.find('#'), line.size()));
    while (!line.empty() && line.back() == ' ') line.pop_back();
    if (!line.empty()) text += line + "\n";
    begin = end + 1;
  }
  return text;
}

Package shortened(Package package) {
  for (Kernel& kernel : package.manifest.kernels) kernel.plan = without_comments(kernel.plan);
  return package;
}

// Pairs of images, with activity maps, and the programs of the layers. Those of one layer compute in one type.
Manifest half_manifest() {
  Manifest manifest = sample_manifest();
  const Precision precisions[] = {Precision::fp16x2, Precision::bf16};
  for (std::size_t i = 0; i < manifest.kernels.size(); ++i) {
    Kernel& kernel = manifest.kernels[i];
    kernel.op += to_string(precisions[i]);
    set_plan(kernel, sample_plan(kernel.layer->shape, {.splits = 2,
                                                       .precision = precisions[i],
                                                       .batch = kernel.planned_batch,
                                                       .skips = ActivityMap{2, 7, 14},
                                                       .marks = true}));
  }
  add_layer_programs(manifest);
  return manifest;
}

// With edited code, and without its weights.
Manifest tuned_manifest() {
  Manifest manifest = sample_manifest();
  manifest.kernels.resize(1);
  manifest.kernels[0].edited = true;
  manifest.kernels[0].layer->data.clear();
  manifest.kernels[0].tuning =
      TuningRecord{.device = "NVIDIA H200",
                   .arch = "sm_90",
                   .driver_version = 13000,
                   .code_copies = 8,
                   .candidates = {{.provider = "conv_baked",
                                   .plan = "tile=1x14x14,groups=1",
                                   .predicted_us = 3.25,
                                   .fault = "",
                                   .us = 4.5,
                                   .samples = 50,
                                   .error = 0.125},
                                  {.provider = "conv_baked",
                                   .plan = "tile=1x7x14,groups=2",
                                   .predicted_us = 3.5,
                                   .fault = "wrong: image 0, channel 1, row 2, col 3: 1.5, expected 1 +- 1e-06"}}};
  return manifest;
}

// Kernels of templates alone: a convolution in nchw4 with a pool and weights, and operators.
Manifest template_manifest() {
  Manifest manifest = network_package().manifest;
  manifest.programs.clear();
  manifest.kernels.erase(manifest.kernels.begin() + 1, manifest.kernels.begin() + 6);
  Kernel& kernel = manifest.kernels[0];
  kernel.planned_batch = 0;
  ConvShape& shape = kernel.layer->shape;
  shape.epilogue.pool = Pool{.kind = PoolKind::max, .kernel_h = 2, .kernel_w = 2, .stride_h = 2, .stride_w = 2};
  TemplatePlan plan = sample_template("conv_dense", shape);
  plan.input() = image_tensor(TensorRole::input, shape.in_channels, shape.in_h, shape.in_w, TensorLayout::nchw4);
  plan.weights() = flat_tensor(TensorRole::weights, shape.weight_elements());
  plan.launch().cluster_tiles = plan.launch().tiles_per_image = 2;
  set_plan(kernel, plan);
  kernel.weights = "weights/conv1";
  return manifest;
}

// A library's call beside the code of a template.
Manifest library_manifest() {
  Manifest manifest = sample_manifest();
  manifest.kernels.resize(1);
  Kernel& kernel = manifest.kernels[0];
  kernel.layer->shape.pad = {1, 1, 1, 1};
  kernel.layer->shape.epilogue = {.bias = true, .function = function_of(Activation::relu)};
  kernel.provider = kCudnnProvider;
  kernel.precision = to_string(Precision::fp32);
  kernel.plan = print(LibraryPlan{.call = {.algorithm = ConvolutionAlgorithm::winograd},
                                  .provider = "conv_dense",
                                  .plan = print(sample_template("conv_dense", kernel.layer->shape))});
  derive_form(kernel);
  add_layer_programs(manifest);
  return manifest;
}

// The same of a fully connected layer.
Manifest product_manifest() {
  Manifest manifest = sample_manifest();
  manifest.kernels.resize(1);
  Kernel& kernel = manifest.kernels[0];
  kernel.kind = "linear";
  kernel.called = CalledLinear{.bias = true, .relu = true, .data = kernel.layer->data};
  kernel.layer.reset();
  kernel.linear = WeightMatrix{8, 24, 100};
  kernel.provider = kLinearCublasProvider;
  kernel.precision = to_string(Precision::fp32);
  TemplatePlan own;
  own.template_name = "linear";
  own.input() = flat_tensor(TensorRole::input, 24);
  own.output() = flat_tensor(TensorRole::output, 8);
  kernel.plan = print(LibraryPlan{.call = {.algorithm = ProductAlgorithm::heuristic_1, .alignment = 16},
                                  .provider = own.template_name,
                                  .plan = print(own)});
  derive_form(kernel);
  add_layer_programs(manifest);
  return manifest;
}

// A program for one batch is enough.
Manifest network_manifest() {
  Manifest manifest = network_package().manifest;
  manifest.programs.pop_back();
  manifest.kernels.erase(manifest.kernels.begin() + 3, manifest.kernels.begin() + 6);
  return manifest;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) {
    std::cerr << "usage: make_package_seeds FOLDER\n";
    return 2;
  }
  const std::filesystem::path folder = arguments[1];
  const auto add = [&](const std::string& name, Manifest manifest) {
    for (Kernel& kernel : manifest.kernels) kernel.plan = without_comments(kernel.plan);
    const std::vector<std::string> faults = verify(manifest);
    BURIN_CHECK(faults.empty(), "{}: {}", name, faults.front());
    std::ofstream(folder / name) << print(manifest);
  };
  add("two_kernels.json", sample_manifest());
  add("half.json", half_manifest());
  add("tuned.json", tuned_manifest());
  add("templates.json", template_manifest());
  add("network.json", network_manifest());
  add("library.json", library_manifest());
  add("product.json", product_manifest());

  Package package = shortened(sample_package());
  write_package(package, folder / "two_kernels.zip");
  package.manifest.kernels.clear();
  std::erase_if(package.files, [](const auto& file) { return !file.first.starts_with("tensors/"); });
  write_package(package, folder / "tensors.zip");
  package.files.clear();
  package.manifest.tensors.clear();
  write_package(package, folder / "empty.zip");
}
