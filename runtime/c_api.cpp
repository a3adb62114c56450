// The C ABI: devices, packages, kernels, memory. Networks: c_api_network.cpp.
#include "runtime/c_api.h"

#include <tuple>

#include "runtime/device_state.h"
#include "runtime/elements.h"
#include "runtime/package_state.h"

namespace {

using burin::CUdeviceptr;
using burin::DriverTable;
using burin::ErrorKind;
using burin::guarded;
using burin::Required;

std::string& last_error() {
  thread_local std::string text;
  return text;
}

// The same for the plain memory and stream functions: `body` gets the driver, with the device's context current.
template <typename Body>
burin_status guarded_in_context(const char* function, const burin_device* device, Body body) noexcept {
  return guarded(function, [&](const Required& required) {
    const burin::DeviceState& state = *required(device, "device").device.state();
    const burin::ContextScope scope(state);
    body(*state.driver, required);
  });
}

static_assert(BURIN_F16 == static_cast<int>(burin::ElementType::f16) &&
              BURIN_BF16 == static_cast<int>(burin::ElementType::bf16));

burin::ElementType element_type(burin_element element) {
  return burin::internal_element(static_cast<int>(element), "a burin_element");
}

// Sets two sizes at a batch, which are the pair that `bytes_of(kernel)` gives.
template <typename BytesOf>
burin_status get_tensor_bytes(const char* function, const burin_kernel* kernel, int batch, size_t* input,
                              size_t* output, BytesOf bytes_of) noexcept {
  return guarded(function, [&](const Required& required) {
    const burin::LoadedKernel& ours = required(kernel, "kernel").kernel;
    size_t& input_bytes = required(input, "input");
    size_t& output_bytes = required(output, "output");
    ours.grid(batch);  // throws for a batch that no launch can have
    std::tie(input_bytes, output_bytes) = bytes_of(ours);
  });
}

CUdeviceptr as_address(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }

}  // namespace

burin_status burin::remember_error(burin_status status, const char* text) noexcept {
  try {
    last_error() = text;
  } catch (...) {
    last_error().clear();  // no memory even for the message
  }
  return status;
}

int burin::note_count(const LoadNotes& notes) { return static_cast<int>(notes.count()); }

const char* burin::note_at(const LoadNotes& notes, int index) {
  const std::string* note = index < 0 ? nullptr : notes.at(static_cast<std::size_t>(index));
  return note == nullptr ? nullptr : note->c_str();
}

const char* burin_version(void) { return BURIN_VERSION; }
const char* burin_last_error(void) { return last_error().c_str(); }

// ---- devices

burin_status burin_device_count(int* count) {
  return guarded(__func__, [&](const Required& required) { required(count, "count") = burin::device_count(); });
}

burin_status burin_device_open(int ordinal, burin_device** device) {
  return guarded(__func__, [&](const Required& required) {
    burin_device*& result = required(device, "device");
    result = new burin_device{burin::Device::open(ordinal)};
  });
}

void burin_device_release(burin_device* device) { delete device; }

const char* burin_device_name(const burin_device* device) {
  return device == nullptr ? nullptr : device->device.info().name.c_str();
}

burin_status burin_device_synchronize(const burin_device* device) {
  return guarded(__func__, [&](const Required& required) { required(device, "device").device.synchronize(); });
}

// ---- packages

burin_status burin_package_open(const burin_device* device, const char* path, burin_package** package) {
  return guarded(__func__, [&](const Required& required) {
    burin_package*& result = required(package, "package");
    burin::LoadedPackage loaded(required(device, "device").device, &required(path, "path"));
    std::vector<std::string> layers = loaded.layers();
    result = new burin_package{std::move(loaded), std::move(layers)};
  });
}

void burin_package_release(burin_package* package) { delete package; }

int burin_package_layer_count(const burin_package* package) {
  return package == nullptr ? 0 : static_cast<int>(package->layers.size());
}

const char* burin_package_layer_name(const burin_package* package, int index) {
  if (index < 0 || index >= burin_package_layer_count(package)) return nullptr;
  return package->layers[static_cast<std::size_t>(index)].c_str();
}

int burin_package_note_count(const burin_package* package) {
  return package == nullptr ? 0 : burin::note_count(*package->package.state()->notes);
}

const char* burin_package_note(const burin_package* package, int index) {
  return package == nullptr ? nullptr : burin::note_at(*package->package.state()->notes, index);
}

// ---- kernels

burin_status burin_kernel_find(const burin_package* package, const char* layer, int batch, burin_kernel** kernel) {
  return guarded(__func__, [&](const Required& required) {
    burin_kernel*& result = required(kernel, "kernel");
    result = new burin_kernel{required(package, "package").package.kernel(&required(layer, "layer"), batch)};
  });
}

void burin_kernel_release(burin_kernel* kernel) { delete kernel; }

burin_status burin_kernel_get_shape(const burin_kernel* kernel, burin_kernel_shape* shape) {
  return guarded(__func__, [&](const Required& required) {
    const burin::LoadedKernel& ours = required(kernel, "kernel").kernel;
    const burin::ImageShape in = ours.input_shape();
    const burin::ImageShape out = ours.output_shape();
    required(shape, "shape") = {in.channels,
                                in.height,
                                in.width,
                                out.channels,
                                out.height,
                                out.width,
                                ours.needs_residual() ? 1 : 0,
                                in.channels_together,
                                out.channels_together,
                                in.alignment,
                                out.alignment,
                                in.images_together,
                                out.images_together,
                                static_cast<burin_element>(in.element),
                                static_cast<burin_element>(out.element)};
  });
}

burin_status burin_kernel_tensor_bytes(const burin_kernel* kernel, int batch, size_t* input, size_t* output) {
  return get_tensor_bytes(__func__, kernel, batch, input, output, [batch](const burin::LoadedKernel& ours) {
    return std::pair(ours.input_shape().tensor_bytes(batch), ours.output_shape().tensor_bytes(batch));
  });
}

burin_status burin_kernel_get_activity(const burin_kernel* kernel, burin_activity_shape* input,
                                       burin_activity_shape* output) {
  return guarded(__func__, [&](const Required& required) {
    const burin::LoadedKernel& ours = required(kernel, "kernel").kernel;
    burin_activity_shape& of_input = required(input, "input");
    burin_activity_shape& of_output = required(output, "output");
    const auto cell = [](const std::optional<burin::ActivityShape>& map) -> burin_activity_shape {
      if (!map) return {0, 0, 0};
      return {map->cell_images, map->cell_rows, map->cell_cols};
    };
    of_input = cell(ours.input_activity());
    of_output = cell(ours.output_activity());
  });
}

burin_status burin_kernel_activity_bytes(const burin_kernel* kernel, int batch, size_t* input, size_t* output) {
  return get_tensor_bytes(__func__, kernel, batch, input, output, [batch](const burin::LoadedKernel& ours) {
    const auto bytes = [batch](const std::optional<burin::ActivityShape>& map) { return map ? map->bytes(batch) : 0; };
    return std::pair(bytes(ours.input_activity()), bytes(ours.output_activity()));
  });
}

burin_status burin_kernel_workspace_bytes(const burin_kernel* kernel, int batch, size_t* bytes) {
  return guarded(__func__, [&](const Required& required) {
    required(bytes, "bytes") = static_cast<size_t>(required(kernel, "kernel").kernel.workspace_bytes(batch));
  });
}

burin_status burin_workspace_create(const burin_device* device, const burin_kernel* kernel, int max_batch,
                                    burin_workspace** workspace) {
  return guarded(__func__, [&](const Required& required) {
    burin_workspace*& result = required(workspace, "workspace");
    const burin::WorkspaceSize size = required(kernel, "kernel").kernel.workspace_size(max_batch);
    result = new burin_workspace{burin::Workspace(required(device, "device").device, size)};
  });
}

void burin_workspace_release(burin_workspace* workspace) { delete workspace; }

burin_status burin_launch(const burin_kernel* kernel, struct CUstream_st* stream, const void* input, void* output,
                          const void* residual, int batch, const burin_workspace* workspace) {
  return burin_launch_with_activity(kernel, stream, input, output, residual, batch, workspace, nullptr, nullptr);
}

burin_status burin_launch_with_activity(const burin_kernel* kernel, struct CUstream_st* stream, const void* input,
                                        void* output, const void* residual, int batch, const burin_workspace* workspace,
                                        const void* input_activity, void* output_activity) {
  return guarded("burin_launch", [&](const Required& required) {
    required(kernel, "kernel")
        .kernel.launch(stream, {input, output, residual, batch, input_activity, output_activity},
                       workspace == nullptr ? burin::WorkspaceView{} : workspace->workspace.view());
  });
}

// ---- memory, conversions and streams

burin_status burin_memory_alloc(const burin_device* device, size_t bytes, void** memory) {
  return guarded_in_context(__func__, device, [&](const DriverTable& driver, const Required& required) {
    void*& result = required(memory, "memory");
    CUdeviceptr address = 0;
    check(driver, driver.cuMemAlloc(&address, bytes), "cuMemAlloc", fmt::format("while allocating {} bytes", bytes));
    result = reinterpret_cast<void*>(address);
  });
}

burin_status burin_memory_free(const burin_device* device, void* memory) {
  return guarded_in_context(__func__, device, [&](const DriverTable& driver, const Required&) {
    if (memory != nullptr) check(driver, driver.cuMemFree(as_address(memory)), "cuMemFree");
  });
}

burin_status burin_copy_to_device(const burin_device* device, void* target, const void* source, size_t bytes) {
  return guarded_in_context(__func__, device, [&](const DriverTable& driver, const Required& required) {
    if (bytes == 0) return;
    required(static_cast<char*>(target), "target");
    required(static_cast<const char*>(source), "source");
    check(driver, driver.cuMemcpyHtoD(as_address(target), source, bytes), "cuMemcpyHtoD");
    // The call may return while the last part is still on its way.
    check(driver, driver.cuStreamSynchronize(nullptr), "cuStreamSynchronize", "while copying to the device");
  });
}

burin_status burin_copy_to_host(const burin_device* device, void* target, const void* source, size_t bytes) {
  return guarded_in_context(__func__, device, [&](const DriverTable& driver, const Required& required) {
    if (bytes == 0) return;
    required(static_cast<char*>(target), "target");
    required(static_cast<const char*>(source), "source");
    check(driver, driver.cuMemcpyDtoH(target, as_address(source), bytes), "cuMemcpyDtoH");
  });
}

burin_status burin_to_elements(burin_element element, const float* values, size_t count, void* elements) {
  return guarded(__func__, [&](const Required& required) {
    const burin::ElementType type = element_type(element);
    if (count == 0) return;
    auto* const target = static_cast<std::byte*>(elements);
    burin::write_elements(type, {&required(values, "values"), count}, &required(target, "elements"));
  });
}

burin_status burin_from_elements(burin_element element, const void* elements, size_t count, float* values) {
  return guarded(__func__, [&](const Required& required) {
    const burin::ElementType type = element_type(element);
    if (count == 0) return;
    const auto* const source = static_cast<const std::byte*>(elements);
    burin::read_elements(type, &required(source, "elements"), {&required(values, "values"), count});
  });
}

burin_status burin_stream_create(const burin_device* device, struct CUstream_st** stream) {
  return guarded_in_context(__func__, device, [&](const DriverTable& driver, const Required& required) {
    burin::CUstream& result = required(stream, "stream");
    burin::CUstream made = nullptr;
    check(driver, driver.cuStreamCreate(&made, burin::kStreamNonBlocking), "cuStreamCreate");
    result = made;
  });
}

burin_status burin_stream_destroy(const burin_device* device, struct CUstream_st* stream) {
  return guarded_in_context(__func__, device, [&](const DriverTable& driver, const Required&) {
    if (stream != nullptr) check(driver, driver.cuStreamDestroy(stream), "cuStreamDestroy");
  });
}

burin_status burin_stream_synchronize(const burin_device* device, struct CUstream_st* stream) {
  return guarded_in_context(__func__, device, [&](const DriverTable& driver, const Required&) {
    check(driver, driver.cuStreamSynchronize(stream), "cuStreamSynchronize",
          "a kernel or copy that ran on the stream may be at fault");
  });
}
