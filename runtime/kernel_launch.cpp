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
      return code.weights == nullptr ? nullptr : code.weights->data<void>();
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

void encode_box(const TensorBox& box, KernelLaunch& launch, TensorMap& map) {
  const DriverTable& driver = *launch.code->device->driver;
  const auto tensor = static_cast<std::size_t>(box.tensor);
  const BoxAxes axes = axes_of(box, launch.code->kernel->form.tensors[tensor], launch.batch);
  const CUresult result = driver.cuTensorMapEncodeTiled(
      &map, kTensorMapUint16, BoxAxes::kAxes, launch.pointers[tensor], axes.extents.data(), axes.strides.data(),
      axes.box.data(), axes.steps.data(), kTensorMapNoInterleave,
      box.swizzled ? kTensorMapSwizzleLines : kTensorMapNoSwizzle, kTensorMapNoPromotion, kTensorMapZeros);
  if (result != kCudaSuccess) [[unlikely]] {
    fail_driver(driver, result, "cuTensorMapEncodeTiled",
                fmt::format("for boxes {}, while preparing {}", print(box), launch.what()));
  }
}

}  // namespace

KernelLaunch make_launch(std::shared_ptr<const LoadedCode> code, const LaunchPointers& pointers, int batch) {
  KernelLaunch launch;
  launch.grid = launch_grid(*code->kernel, batch);
  launch.batch = batch;
  launch.call = code->call_for(batch);
  if (launch.call != nullptr) {
    const auto read = [&](TensorRole role) {
      const KernelTensor* tensor = code->kernel->form.find(role);
      return tensor == nullptr ? nullptr : pointer_of(*tensor, pointers, *code);
    };
    launch.call_pointers = {read(TensorRole::input), read(TensorRole::residual), pointers.output,
                            pointers.scratch.partials};
    launch.code = std::move(code);
    return launch;
  }
  const std::vector<KernelTensor>& tensors = code->kernel->form.tensors;
  for (std::size_t i = 0; i < tensors.size(); ++i) launch.pointers[i] = pointer_of(tensors[i], pointers, *code);
  launch.code = std::move(code);
  const std::vector<TensorBox>& boxes = launch.code->kernel->form.boxes;
  if (boxes.empty()) return launch;
  const ContextScope scope(*launch.code->device);
  for (std::size_t i = 0; i < boxes.size(); ++i) encode_box(boxes[i], launch, launch.boxes[i]);
  return launch;
}

KernelLaunch::Parameters KernelLaunch::parameters() const {
  Parameters addresses{};
  const KernelForm& form = code->kernel->form;
  std::size_t count = 0;
  for (std::size_t i = 0; i < form.tensors.size(); ++i) addresses[count++] = const_cast<void**>(&pointers[i]);
  for (std::size_t i = 0; i < form.boxes.size(); ++i) addresses[count++] = const_cast<TensorMap*>(&boxes[i]);
  addresses[count] = const_cast<std::int32_t*>(&batch);
  return addresses;
}

std::string KernelLaunch::what() const {
  const Kernel& kernel = *code->kernel;
  const LaunchGeometry& launch = kernel.form.launch;
  if (call != nullptr) {
    return fmt::format("{}kernel {} of {}, with batch {}: {}", step < 0 ? "" : fmt::format("step {}, ", step),
                       kernel.symbol, kernel.owner(), batch, call->what());
  }
  return fmt::format("{}kernel {} of {}, with batch {}: {} x {} blocks of {} threads, {} bytes of shared memory",
                     step < 0 ? "" : fmt::format("step {}, ", step), kernel.symbol, kernel.owner(), batch, grid.tiles,
                     grid.slices, launch.threads, launch.shared_bytes);
}

void KernelLaunch::enqueue(CUstream_st* stream) const {
  if (call != nullptr) return call->enqueue(stream, call_pointers);
  const DeviceState& device = *code->device;
  const DriverTable& driver = *device.driver;
  const LaunchGeometry& launch = code->kernel->form.launch;
  Parameters addresses = parameters();
  const ContextScope scope(device);
  const CUresult result =
      driver.cuLaunchKernel(code->module->function, grid.tiles, grid.slices, 1, static_cast<unsigned>(launch.threads),
                            1, 1, static_cast<unsigned>(launch.shared_bytes), stream, addresses.data(), nullptr);
  if (result != kCudaSuccess) [[unlikely]]
    fail_driver(driver, result, "cuLaunchKernel", "while launching " + what());
}

}  // namespace burin
