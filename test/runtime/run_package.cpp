#include "test/runtime/run_package.h"

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ir/error.h"
#include "ir/package/names.h"
#include "runtime/burin/device_memory.hpp"
#include "runtime/burin/network.hpp"
#include "test/package/sample_plans.h"

using namespace burin;

namespace burin_test {
namespace {

// Memory for tensors of a launch, which lives as long as this.
class LaunchMemory {
 public:
  explicit LaunchMemory(const Device& device) : device_(device) {}
  void* take(std::int64_t bytes) {
    buffers_.emplace_back(device_, static_cast<std::size_t>(bytes));
    return buffers_.back().data();
  }

 private:
  const Device& device_;
  std::vector<DeviceBuffer> buffers_;
};

void launch_kernel(const Device& device, const LoadedKernel& kernel, int batch) {
  LaunchMemory memory(device);
  const WorkspaceSize needed = kernel.workspace_size(batch);
  LaunchIo io{.input = memory.take(kernel.input_shape().tensor_bytes(batch)),
              .output = memory.take(kernel.output_shape().tensor_bytes(batch)),
              .batch = batch};
  if (kernel.needs_residual()) io.residual = memory.take(kernel.output_shape().tensor_bytes(batch));
  if (const auto map = kernel.input_activity()) io.input_activity = memory.take(map->bytes(batch));
  if (const auto map = kernel.output_activity()) io.output_activity = memory.take(map->bytes(batch));
  const Workspace workspace(device, needed);
  kernel.launch(nullptr, io, workspace);
}

void launch_program(const Device& device, const LoadedNetwork& network, int batch) {
  LaunchMemory memory(device);
  NetworkIo io{.batch = batch};
  for (const NetworkTensor& tensor : network.inputs(batch)) io.inputs.push_back(memory.take(tensor.bytes(batch)));
  for (const NetworkTensor& tensor : network.outputs(batch)) io.outputs.push_back(memory.take(tensor.bytes(batch)));
  const NetworkRun run = network.bind(io);
  run.launch(nullptr);
}

}  // namespace

std::shared_ptr<Package> with_sample_files(Manifest manifest, std::int64_t most_bytes) {
  auto package = std::make_shared<Package>();
  std::int64_t bytes = 0;
  const auto add = [&](const std::string& path, std::int64_t size) {
    bytes += size;
    if (bytes > most_bytes) return false;
    package->files[path] = std::string(static_cast<std::size_t>(size), '\1');
    return true;
  };
  for (const TensorRecord& tensor : manifest.tensors) {
    const std::optional<std::int64_t> size = tensor_bytes(tensor);
    if (size && !add(tensor.path, *size)) return nullptr;
  }
  for (Kernel& kernel : manifest.kernels) {
    const KernelTensor* weights = kernel.form.find(TensorRole::weights);
    if (weights != nullptr && !kernel.weights.empty() && !add(kernel.weights, weights->run_words * kWordBytes)) {
      return nullptr;
    }
    if (!kernel.layer_data().empty()) add(kernel.layer_data(), 1);
    for (KernelBinary& binary : std::exchange(kernel.binaries, {})) {
      binary.registers = binary.code_bytes = -1;
      add_code(*package, kernel, binary, binary.kind == BinaryKind::ptx ? ".version 8.0 of " : "code of ");
    }
  }
  package->manifest = std::move(manifest);
  return package;
}

PackageRun run_package(const std::shared_ptr<const Package>& package) {
  PackageRun run;
  const auto attempt = [&](const auto& launch) {
    try {
      launch();
      ++run.launches;
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::internal) throw;
      ++run.refusals;
    }
  };
  const Device device = Device::open(0);
  // Libraries that the machine has would take the fake driver's memory for a GPU's.
  const LoadOptions without_libraries{.cudnn = {"/nowhere/libcudnn.so.9"}, .cublaslt = {"/nowhere/libcublasLt.so.13"}};
  const LoadedPackage loaded(device, package, "sample", without_libraries);
  for (const Kernel& kernel : package->manifest.kernels) {
    if (!kernel.is_convolution()) continue;
    for (const int batch : {1, 3, kernel.planned_batch}) {
      attempt([&] { launch_kernel(device, loaded.kernel_by_symbol(kernel.symbol), batch); });
    }
  }
  std::set<std::string> names;
  for (const Program& program : package->manifest.programs) names.insert(program.name);
  for (const std::string& name : names) {
    for (const int batch : {1, 5, 33}) {
      attempt([&] { launch_program(device, LoadedNetwork(loaded, name), batch); });
    }
  }
  return run;
}

}  // namespace burin_test
