#include "test/runtime/sample_package.h"

using namespace burin;

namespace burin_test {

KernelRecord sample_kernel(const std::string& layer, int planned_batch) {
  KernelRecord record;
  record.layer = layer;
  record.symbol = layer + "_b" + std::to_string(planned_batch);
  record.shape.in_channels = 8;
  record.shape.out_channels = 16;
  record.shape.kernel_h = record.shape.kernel_w = 3;
  record.shape.pad = {1, 1, 1, 1};
  record.shape.in_h = record.shape.in_w = 14;
  record.nonzeros = 100;
  record.template_name = "conv_baked";
  record.precision = "fp32";
  record.plan = "template: conv_baked\n";
  record.plan_short = "tile 1x7x7";
  record.planned_batch = planned_batch;
  record.source_hash = "0123456789abcdef";
  record.launch.threads = 64;
  record.launch.shared_bytes = 100'000;
  record.launch.slices = 2;
  record.launch.tile_images = 1;
  record.launch.tiles_per_image = 4;
  record.launch.workspace_bytes_per_tile = 4096;
  record.launch.counters_per_tile = 2;
  return record;
}

void add_binary(Package& package, KernelRecord& record, BinaryKind kind, const std::string& arch) {
  KernelBinary binary;
  binary.kind = kind;
  binary.arch = arch;
  const bool is_ptx = kind == BinaryKind::ptx;
  binary.path = "kernels/" + record.symbol + "." + arch + (is_ptx ? ".ptx" : ".cubin");
  const std::string content =
      (is_ptx ? ".version 8.0 .target " : "machine code for ") + arch + " of " + record.symbol + "\n";
  binary.bytes = static_cast<std::int64_t>(content.size());
  package.files[binary.path] = content;
  record.binaries.push_back(binary);
}

std::shared_ptr<Package> sample_package(const SampleCode& code) {
  auto package = std::make_shared<Package>();
  package->manifest.tool_version = "0.1.0";
  package->manifest.source = "sample.safetensors";
  std::vector<KernelRecord>& kernels = package->manifest.kernels;
  for (const int batch : {1, 8, 32}) kernels.push_back(sample_kernel("conv1", batch));
  KernelRecord& conv2 = kernels.emplace_back(sample_kernel("conv2", 4));
  conv2.shape.epilogue.residual = true;
  conv2.launch.workspace_bytes_per_tile = 0;
  conv2.launch.counters_per_tile = 0;
  conv2.launch.shared_bytes = 0;
  for (KernelRecord& record : kernels) {
    for (const std::string& arch : code.ptx) add_binary(*package, record, BinaryKind::ptx, arch);
    for (const std::string& arch : code.cubins) add_binary(*package, record, BinaryKind::cubin, arch);
  }
  return package;
}

std::shared_ptr<Package> half_sample_package(Precision precision) {
  std::shared_ptr<Package> package = sample_package();
  for (KernelRecord& record : package->manifest.kernels) {
    record.precision = to_string(precision);
    record.launch.input_element = record.launch.output_element = element_of(precision);
    record.launch.input_layout = record.launch.output_layout = TensorLayout::n2chw;
    record.launch.tile_images = 2;
  }
  return package;
}

}  // namespace burin_test
