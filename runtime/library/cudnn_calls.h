// Calls of cuDNN from one tensor to another that are no convolutions: pools, softmax, and values that are moved. Only
// the baseline of bench makes them.
#pragma once

#include <functional>
#include <memory>

#include "ir/library_task.h"
#include "runtime/library/cudnn_convolution.h"

namespace burin {

// Puts the call on a stream; from and to device memory. It may be captured.
using CudnnCall = std::function<CudnnStatus(CUstream_st*, const void* input, void* output)>;

// How its tensors lie, and of what type they are.
struct CudnnTensors {
  int images = 1;
  CudnnLayout layout = CudnnLayout::nchw;
  CudnnType type = CudnnType::float32;
};

// Each throws Error(device) where cuDNN cannot be told of it. A pool is padded alike on opposite sides and has no
// dilation. Padding of an average counts where the pool says so, and NaN is a largest value.
CudnnCall cudnn_pool(std::shared_ptr<const CudnnHandle> handle, const PooledImage& pooled, const CudnnTensors& tensors);
// The largest value is subtracted first, as burin does it: CUDNN_SOFTMAX_ACCURATE. A flat image is one instance.
CudnnCall cudnn_softmax(std::shared_ptr<const CudnnHandle> handle, const SoftmaxImage& softmax,
                        const CudnnTensors& tensors);
// cuDNN moves along up to kCudnnMostAxes axes.
CudnnCall cudnn_transform(std::shared_ptr<const CudnnHandle> handle, const MovedTensor& moved, CudnnType type);

}  // namespace burin
