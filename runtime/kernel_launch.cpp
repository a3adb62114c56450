#include "runtime/kernel_launch.h"

#include <utility>

#include "ir/error.h"
#include "runtime/launch_plan.h"

namespace burin {
namespace {

void* pointer_of(const KernelTensor& tensor, const LaunchPointers& pointers, const LoadedCode& code) {
  if (!tensor.exists()) return nullptr;
  switch (tensor.role) {
    case TensorRole::input:
    case TensorRole::residual:
      return pointers.reads[static_cast<std::size_t>(tensor.argument)];
    case TensorRole::output:
      return pointers.output;
    case TensorRole::weights:
      return code.weights.data<void>();
    case TensorRole::partials:
      return pointers.scratch.partials;
    case TensorRole::counters:
      return pointers.scratch.counters;
    case TensorRole::input_map:
      return pointers.input_map;
    case TensorRole::output_map:
      return pointers.output_map;
  }
  return nullptr;
}

}  // namespace

KernelLaunch make_launch(std::shared_ptr<const LoadedCode> code, const LaunchPointers& pointers, int batch) {
  KernelLaunch launch;
  launch.grid = launch_grid(*code->kernel, batch);
  launch.batch = batch;
  const std::vector<KernelTensor>& tensors = code->kernel->form.tensors;
  for (std::size_t i = 0; i < tensors.size(); ++i) launch.pointers[i] = pointer_of(tensors[i], pointers, *code);
  launch.code = std::move(code);
  return launch;
}

std::array<void*, kMaxKernelTensors + 1> KernelLaunch::parameters() const {
  std::array<void*, kMaxKernelTensors + 1> addresses{};
  const std::size_t count = code->kernel->form.tensors.size();
  for (std::size_t i = 0; i < count; ++i) addresses[i] = const_cast<void**>(&pointers[i]);
  addresses[count] = const_cast<std::int32_t*>(&batch);
  return addresses;
}

std::string KernelLaunch::what() const {
  const Kernel& kernel = *code->kernel;
  const LaunchGeometry& launch = kernel.form.launch;
  return fmt::format("{}kernel {} of {}, with batch {}: {} x {} blocks of {} threads, {} bytes of shared memory",
                     step < 0 ? "" : fmt::format("step {}, ", step), kernel.symbol, kernel.owner(), batch, grid.tiles,
                     grid.slices, launch.threads, launch.shared_bytes);
}

void KernelLaunch::enqueue(CUstream_st* stream) const {
  const DeviceState& device = *code->device;
  const DriverTable& driver = *device.driver;
  const LaunchGeometry& launch = code->kernel->form.launch;
  std::array<void*, kMaxKernelTensors + 1> addresses = parameters();
  const ContextScope scope(device);
  const CUresult result =
      driver.cuLaunchKernel(code->function, grid.tiles, grid.slices, 1, static_cast<unsigned>(launch.threads), 1, 1,
                            static_cast<unsigned>(launch.shared_bytes), stream, addresses.data(), nullptr);
  if (result != kCudaSuccess) [[unlikely]]
    fail_driver(driver, result, "cuLaunchKernel", "while launching " + what());
}

}  // namespace burin
