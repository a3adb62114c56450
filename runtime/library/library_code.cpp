#include "runtime/library/library_code.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <utility>
#include <vector>

#include "ir/error.h"
#include "runtime/capture.h"

namespace burin {
namespace {

constexpr const char* kCudnnVariable = "BURIN_CUDNN";
constexpr const char* kDefaultCudnn = "libcudnn.so.9";

// No package says which file is opened.
std::vector<std::string> cudnn_candidates(const LoadOptions& options) {
  if (!options.cudnn.empty()) return options.cudnn;
  const char* variable = std::getenv(kCudnnVariable);
  return {variable != nullptr && *variable != '\0' ? variable : kDefaultCudnn};
}

const std::string& upper_case(std::string& text) {
  std::ranges::transform(text, text.begin(),
                         [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
  return text;
}

std::int64_t pitch_of(const KernelForm& form, TensorRole role) {
  const KernelTensor* tensor = form.find(role);
  return tensor == nullptr || !tensor->exists() ? 0 : tensor->image_words;
}

CudnnProblem problem_of(const Kernel& kernel, int batch) {
  const bool tf32 = kernel.call->factors == FactorType::tf32;
  return {.shape = kernel.layer->shape,
          .batch = batch,
          .math = tf32 ? CudnnMath::tf32_allowed : CudnnMath::fp32,
          .with_epilogue = true,
          .input_pitch = pitch_of(kernel.form, TensorRole::input),
          .residual_pitch = pitch_of(kernel.form, TensorRole::residual),
          .output_pitch = pitch_of(kernel.form, TensorRole::output)};
}

DeviceBuffer memory_of(const Device& device, const KernelForm& form, TensorRole role, int batch) {
  const KernelTensor* tensor = form.find(role);
  if (tensor == nullptr || !tensor->exists()) return {};
  DeviceBuffer buffer(device, static_cast<std::size_t>(tensor->spanned_memory(batch)) * kWordBytes);
  buffer.fill(0);
  return buffer;
}

// Runs it once and captures it once, on memory of its own.
void try_out(const Device& device, const Kernel& kernel, const LibraryLaunch& launch, int batch) {
  const DeviceBuffer input = memory_of(device, kernel.form, TensorRole::input, batch);
  const DeviceBuffer residual = memory_of(device, kernel.form, TensorRole::residual, batch);
  const DeviceBuffer output = memory_of(device, kernel.form, TensorRole::output, batch);
  DeviceBuffer workspace;
  if (launch.workspace_bytes() > 0) {
    workspace = DeviceBuffer(device, static_cast<std::size_t>(launch.workspace_bytes()));
  }
  const CallPointers pointers{input.data<void>(), residual.data<void>(), output.data<void>(), workspace.data<void>()};
  const Stream stream(device);
  launch.enqueue(stream, pointers);
  stream.synchronize();
  const ContextScope scope(*device.state());
  Capture capture(*device.state()->driver, stream);
  launch.enqueue(stream, pointers);
  capture.end();
}

}  // namespace

// ---- LibraryLaunch

LibraryLaunch::LibraryLaunch(std::shared_ptr<const CudnnHandle> handle, const Kernel& kernel, const void* weights,
                             const void* bias, int batch)
    : convolution_(std::move(handle), problem_of(kernel, batch)),
      algorithm_(static_cast<int>(kernel.call->algorithm)),
      weights_(weights),
      bias_(bias) {
  check_cudnn(convolution_.handle().table(), convolution_.workspace_bytes(algorithm_, workspace_bytes_),
              "cudnnGetConvolutionForwardWorkspaceSize");
  if (workspace_bytes_ > static_cast<std::size_t>(kernel.call->workspace_limit)) {
    fail(ErrorKind::device, "it wants {} bytes of scratch memory, and its plan allows {}", workspace_bytes_,
         kernel.call->workspace_limit);
  }
}

void LibraryLaunch::enqueue(CUstream_st* stream, const CallPointers& pointers) const {
  const CudnnStatus status = convolution_.enqueue(stream, algorithm_,
                                                  {.input = pointers.input,
                                                   .weights = weights_,
                                                   .bias = bias_,
                                                   .residual = pointers.residual,
                                                   .output = pointers.output,
                                                   .workspace = pointers.workspace,
                                                   .workspace_bytes = workspace_bytes_});
  check_cudnn(convolution_.handle().table(), status,
              convolution_.is_fused() ? "cudnnConvolutionBiasActivationForward" : "cudnnConvolutionForward");
}

std::string LibraryLaunch::what() const {
  return fmt::format("cuDNN {} {}", convolution_.handle().library().version(), cudnn_algorithm_name(algorithm_));
}

// ---- LibraryCode

LibraryCode::LibraryCode(const Device& device, std::shared_ptr<const CudnnHandle> handle, const Kernel& kernel,
                         const ConvLayer& layer, LibraryUse use, std::shared_ptr<LoadNotes> notes)
    : device_(device),
      handle_(std::move(handle)),
      kernel_(kernel),
      use_(use),
      notes_(std::move(notes)),
      weights_(device, std::span<const float>(layer.weights)) {
  std::vector<float> bias = layer.bias;
  bias.resize(static_cast<std::size_t>(layer.shape.out_channels));  // a call that fuses adds one, if of zeros
  bias_ = DeviceBuffer(device, std::span<const float>(bias));
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
    auto made =
        std::make_shared<const LibraryLaunch>(handle_, kernel_, weights_.data<void>(), bias_.data<void>(), batch);
    try_out(device_, kernel_, *made, batch);
    return made;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::device) throw;
    std::string algorithm(to_string(kernel_.call->algorithm));
    const std::string refused = fmt::format("{}, batch {}: cuDNN {} refuses {}: {}", kernel_.owner(), batch, version(),
                                            upper_case(algorithm), error.what());
    if (use_ == LibraryUse::required) fail(ErrorKind::unsupported, "{}", refused);
    notes_->add(refused + "; burin's own code runs in its place");
    return nullptr;
  }
}

std::unique_ptr<const LibraryCode> load_library_code(const Device& device, const Kernel& kernel,
                                                     std::string_view layer_data, const LoadOptions& options,
                                                     const std::shared_ptr<LoadNotes>& notes) {
  BURIN_CHECK(kernel.call && kernel.layer, "kernel {} has no library's call", kernel.symbol);
  std::shared_ptr<const CudnnHandle> handle;
  try {
    handle = device.state()->cudnn->get(cudnn_candidates(options));
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::device || options.libraries == LibraryUse::required) throw;
    notes->add(fmt::format("kernels that call cuDNN run burin's own code in its place: {}", error.what()));
    return nullptr;
  }
  const ConvLayer layer = decode_layer(layer_data, kernel.op, kernel.layer->shape);
  return std::make_unique<const LibraryCode>(device, std::move(handle), kernel, layer, options.libraries, notes);
}

}  // namespace burin
