#include "runtime/library/library_code.h"

#include <cstdlib>
#include <utility>
#include <vector>

#include "ir/error.h"
#include "runtime/capture.h"

namespace burin {
namespace {

// No package says which file is opened.
std::vector<std::string> candidates_for(Library library, const LoadOptions& options) {
  const std::vector<std::string>& named = library == Library::cudnn ? options.cudnn : options.cublaslt;
  if (!named.empty()) return named;
  const LibraryFiles files = files_of(library);
  const char* variable = std::getenv(files.variable);
  if (variable != nullptr && *variable != '\0') return {variable};
  return {files.names.begin(), files.names.end()};
}

DeviceBuffer memory_of(const Device& device, const KernelForm& form, TensorRole role, int batch, CUstream stream) {
  const KernelTensor* tensor = form.find(role);
  if (tensor == nullptr || !tensor->exists()) return {};
  DeviceBuffer buffer(device, static_cast<std::size_t>(tensor->spanned_memory(batch)) * kWordBytes);
  const DriverTable& driver = *device.state()->driver;
  const ContextScope scope(*device.state());
  check(driver, driver.cuMemsetD8Async(reinterpret_cast<CUdeviceptr>(buffer.data<void>()), 0, buffer.bytes(), stream),
        "cuMemsetD8Async");
  return buffer;
}

// Runs it once and captures it once, on memory of its own. The caller may capture a stream meanwhile, which the default
// stream would break, so all is done on a stream of its own.
void try_out(const Device& device, const Kernel& kernel, const LibraryLaunch& launch, int batch) {
  const Stream stream(device);
  const DeviceBuffer input = memory_of(device, kernel.form, TensorRole::input, batch, stream);
  const DeviceBuffer residual = memory_of(device, kernel.form, TensorRole::residual, batch, stream);
  const DeviceBuffer output = memory_of(device, kernel.form, TensorRole::output, batch, stream);
  DeviceBuffer workspace;
  if (launch.workspace_bytes() > 0) {
    workspace = DeviceBuffer(device, static_cast<std::size_t>(launch.workspace_bytes()));
  }
  const CallPointers pointers{input.data<void>(), residual.data<void>(), output.data<void>(), workspace.data<void>()};
  launch.enqueue(stream, pointers);
  stream.synchronize();
  const DriverTable& driver = *device.state()->driver;
  const ContextScope scope(*device.state());
  // What allocates each time that it runs would break its callers' captures.
  const ThreadCaptureMode strict(driver, kStreamCaptureModeThreadLocal);
  Capture capture(driver, stream);
  launch.enqueue(stream, pointers);
  capture.end();
}

}  // namespace

LibraryCode::LibraryCode(const Device& device, std::shared_ptr<const LibraryHandle> handle, const Kernel& kernel,
                         const ConvLayer& layer, LibraryUse use, std::shared_ptr<LoadNotes> notes)
    : device_(device), handle_(std::move(handle)), kernel_(kernel), use_(use), notes_(std::move(notes)) {
  const LibraryNumbers numbers = library_numbers(*kernel.call, layer, called_format(kernel.form));
  weights_ = DeviceBuffer(device, std::span<const float>(numbers.weights));
  if (!numbers.biases.empty()) bias_ = DeviceBuffer(device, std::span<const float>(numbers.biases));
}

std::shared_ptr<const LibraryLaunch> LibraryCode::for_batch(int batch) const {
  const std::lock_guard lock(mutex_);
  const auto [launch, is_new] = launches_.try_emplace(batch);
  if (!is_new) return launch->second;
  try {
    launch->second = tried(batch);
  } catch (...) {
    launches_.erase(launch);
    throw;
  }
  return launch->second;
}

std::shared_ptr<const LibraryLaunch> LibraryCode::tried(int batch) const {
  try {
    const ThreadCaptureMode relaxed(*device_.state()->driver, kStreamCaptureModeRelaxed);
    std::shared_ptr<const LibraryLaunch> made =
        handle_->launch(kernel_, {weights_.data<void>(), bias_.data<void>()}, batch);
    try_out(device_, kernel_, *made, batch);
    return made;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::device) throw;
    const LibraryCall& call = *kernel_.call;
    const std::string refused =
        fmt::format("{}, batch {}: {} {} refuses {}: {}", kernel_.owner(), batch, title_of(call.library()),
                    handle_->version(), upper_case(to_string(call.algorithm)), error.what());
    if (use_ == LibraryUse::required) fail(ErrorKind::unsupported, "{}", refused);
    notes_->add(refused + "; burin's own code runs in its place");
    return nullptr;
  }
}

std::unique_ptr<const LibraryCode> load_library_code(const Device& device, const Kernel& kernel,
                                                     std::string_view layer_data, const LoadOptions& options,
                                                     const std::shared_ptr<LoadNotes>& notes) {
  BURIN_CHECK(kernel.call, "kernel {} has no library's call", kernel.symbol);
  const Library library = kernel.call->library();
  std::shared_ptr<const LibraryHandle> handle;
  try {
    handle = device.state()->libraries->get(library, candidates_for(library, options));
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::device || options.libraries == LibraryUse::required) throw;
    notes->add(
        fmt::format("kernels that call {} run burin's own code in its place: {}", title_of(library), error.what()));
    return nullptr;
  }
  const ConvLayer layer = decode_layer(layer_data, kernel.op, kernel.called_shape());
  return std::make_unique<const LibraryCode>(device, std::move(handle), kernel, layer, options.libraries, notes);
}

}  // namespace burin
