// LibraryHandle: a library of the GPU's vendor, opened on one device, and what it launches in place of kernels. Whoever
// runs calls knows these and no library by its name.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "ir/kernel.h"
#include "ir/library_call.h"
#include "runtime/device_state.h"

struct CUstream_st;

namespace burin {

// What a launch of a call is given.
struct CallPointers {
  const void *input = nullptr, *residual = nullptr;
  void *output = nullptr, *workspace = nullptr;
};

// What all launches of a call have in common: weights and biases in device memory, as many as bias_elements(); null
// where that is 0.
struct CallWeights {
  const void *weights = nullptr, *bias = nullptr;
};

// The call for so many images. It may be enqueued from several threads, and captured.
class LibraryLaunch {
 public:
  LibraryLaunch() = default;
  virtual ~LibraryLaunch() = default;
  LibraryLaunch(const LibraryLaunch&) = delete;
  LibraryLaunch& operator=(const LibraryLaunch&) = delete;

  virtual std::int64_t workspace_bytes() const = 0;
  // Throws Error(device) where the library fails.
  virtual void enqueue(CUstream_st* stream, const CallPointers& pointers) const = 0;
  // "cuDNN 9.19.0 WINOGRAD"
  virtual std::string what() const = 0;
};

class LibraryHandle {
 public:
  LibraryHandle() = default;
  virtual ~LibraryHandle() = default;
  LibraryHandle(const LibraryHandle&) = delete;
  LibraryHandle& operator=(const LibraryHandle&) = delete;

  virtual std::string version() const = 0;  // "9.19.0"
  // The kernel has a call of this library. Throws Error(device) where the library refuses. The launch keeps the handle,
  // not the weights.
  virtual std::shared_ptr<const LibraryLaunch> launch(const Kernel& kernel, const CallWeights& weights,
                                                      int batch) const = 0;
};

// Where a library is looked for: the environment variable that names its file, else these names in turn.
struct LibraryFiles {
  const char* variable;
  std::vector<std::string_view> names;
};
LibraryFiles files_of(Library library);

class CudnnHandle;     // runtime/library/cudnn_convolution.h
class CublasltHandle;  // runtime/library/cublaslt_product.h

// The handles of a device: one for each library and list of candidates that was asked for, kept as long as the device
// is.
class LibraryHandles {
 public:
  explicit LibraryHandles(const DeviceState& device) : device_(device) {}
  // Throws Error(device); where it did before, says the same again without looking anew.
  std::shared_ptr<const LibraryHandle> get(Library library, const std::vector<std::string>& candidates);
  std::shared_ptr<const CudnnHandle> cudnn(const std::vector<std::string>& candidates);

 private:
  struct Opened {
    Library library;
    std::vector<std::string> candidates;
    std::shared_ptr<const LibraryHandle> handle;
    std::string fault;
  };
  const DeviceState& device_;
  std::mutex mutex_;
  std::vector<Opened> opened_;
};

// Values from one image of a tensor to the next; 0: the kernel has no such tensor.
std::int64_t image_pitch(const KernelForm& form, TensorRole role);
// "WINOGRAD"
std::string upper_case(std::string_view text);

}  // namespace burin
