// A forward convolution as cuDNN is told of it, with or without bias, residual and relu. Whatever calls cuDNN does it
// through this: kernels with a library's call, and the baseline of bench.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "ir/conv_layer.h"
#include "runtime/device_state.h"
#include "runtime/library/cudnn_library.h"
#include "runtime/library/library_handle.h"

namespace burin {

// One of cuDNN's handles, on one device. It holds a stream, so calls of several threads take turns; graphs that were
// captured from it do not use it any more.
class CudnnHandle : public LibraryHandle, public std::enable_shared_from_this<CudnnHandle> {
 public:
  // `device` must outlive this. Throws Error(device) where no candidate is a cuDNN, or it cannot serve the device.
  CudnnHandle(const DeviceState& device, const std::vector<std::string>& candidates);
  ~CudnnHandle() override;

  std::string version() const override { return library_.version(); }
  std::shared_ptr<const LibraryLaunch> launch(const Kernel& kernel, const CallWeights& weights,
                                              int batch) const override;
  const CudnnLibrary& library() const { return library_; }
  const CudnnTable& table() const { return library_.table(); }
  const DeviceState& device() const { return device_; }

  // Calls `work` with the handle, for which the context is current and the stream is set.
  template <typename Work>
  CudnnStatus with_stream(CUstream_st* stream, const Work& work) const {
    const ContextScope scope(device_);
    const std::lock_guard lock(mutex_);
    if (const CudnnStatus status = table().set_stream(handle_, stream); status != kCudnnSuccess) return status;
    return work(handle_);
  }
  template <typename Work>
  CudnnStatus with_handle(const Work& work) const {
    const ContextScope scope(device_);
    const std::lock_guard lock(mutex_);
    return work(handle_);
  }

 private:
  const DeviceState& device_;
  CudnnLibrary library_;
  CudnnObject handle_ = nullptr;
  mutable std::mutex mutex_;
};

struct CudnnProblem {
  ConvShape shape;  // padded alike on opposite sides
  int batch = 1;
  CudnnLayout layout = CudnnLayout::nchw;
  CudnnType type = CudnnType::float32;
  CudnnMath math = CudnnMath::fp32;
  bool with_epilogue = false;  // the shape's bias, residual and relu are part of the call
  int alignment = kWordBytes;  // bytes that the addresses of all tensors are multiples of
  // Values from one image to the next, in nchw; 0: images follow each other.
  std::int64_t input_pitch = 0, residual_pitch = 0, output_pitch = 0;
};

// Device memory.
struct CudnnPointers {
  const void *input = nullptr, *weights = nullptr;
  const void *bias = nullptr, *residual = nullptr;  // with an epilogue; the residual where the shape has one
  void *output = nullptr, *workspace = nullptr;
  std::size_t workspace_bytes = 0;
};

class CudnnConvolution {
 public:
  // Throws Error(device) where cuDNN cannot be told of it.
  CudnnConvolution(std::shared_ptr<const CudnnHandle> handle, const CudnnProblem& problem);
  ~CudnnConvolution();
  CudnnConvolution(const CudnnConvolution&) = delete;
  CudnnConvolution& operator=(const CudnnConvolution&) = delete;

  const CudnnHandle& handle() const { return *handle_; }
  // Whether the call is the one that fuses: a convolution that ends without bias, residual and relu has no need of it.
  bool is_fused() const { return fused_; }
  CudnnStatus workspace_bytes(int algorithm, std::size_t& bytes) const;
  CudnnStatus enqueue(CUstream_st* stream, int algorithm, const CudnnPointers& pointers) const;

 private:
  struct Descriptors;
  std::shared_ptr<const CudnnHandle> handle_;
  bool fused_ = false, residual_ = false;
  std::unique_ptr<Descriptors> descriptors_;
};

}  // namespace burin
