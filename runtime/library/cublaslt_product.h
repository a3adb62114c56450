// A matrix product as cuBLASLt is told of it: a fully connected layer, or a convolution with a 1x1 filter, with or
// without bias, residual and relu.
//
// cuBLASLt counts matrices column by column: D = A B + C, whose elements (row, column) lie `column_pitch` apart from
// column to column. In memory that is:
//   images of one pixel, as of fully connected layers: rows of D are output features and columns images. A is the
//     weights, transposed, and B the input. The bias runs along a column, which is what the library's epilogue adds;
//     the residual is C.
//   images whose channels are last, which follow each other: the same, with a column for each pixel of each.
//   other images: a product for each image. Rows of D are pixels and columns output channels; A is the input and B the
//     weights. The bias of a channel is the same along a whole column, which no epilogue adds: it is C, a matrix that
//     all images share, or C is the residual.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "ir/conv_layer.h"
#include "ir/factor_type.h"
#include "ir/tensor_layout.h"
#include "runtime/device_state.h"
#include "runtime/library/cublaslt_library.h"
#include "runtime/library/library_handle.h"

namespace burin {

// One of cuBLASLt's handles, on one device; calls of several threads take turns.
class CublasltHandle : public LibraryHandle, public std::enable_shared_from_this<CublasltHandle> {
 public:
  // `device` must outlive this. Throws Error(device) where no candidate is a cuBLASLt, or it cannot serve the device.
  CublasltHandle(const DeviceState& device, const std::vector<std::string>& candidates);
  ~CublasltHandle() override;

  const CublasltLibrary& library() const { return library_; }
  const CublasltTable& table() const { return library_.table(); }

  std::string version() const override { return library_.version(); }
  std::shared_ptr<const LibraryLaunch> launch(const Kernel& kernel, const CallWeights& weights,
                                              int batch) const override;

  // Calls `work` with the handle, for which the context is current.
  template <typename Work>
  CublasltStatus with_handle(const Work& work) const {
    const ContextScope scope(device_);
    const std::lock_guard lock(mutex_);
    return work(handle_);
  }

 private:
  const DeviceState& device_;
  CublasltLibrary library_;
  CublasltObject handle_ = nullptr;
  mutable std::mutex mutex_;
};

struct CublasltMatrix {
  std::int64_t rows = 0, cols = 0;
  std::int64_t column_pitch = 0;  // values from one column to the next
  std::int64_t batch_stride = 0;  // values from the matrix of one product to that of the next; 0: they share it
  bool operator==(const CublasltMatrix&) const = default;
};

// What is multiplied, for a convolution that can_call() allows.
struct CublasltProblem {
  CublasltMatrix a, b, c, d;
  int products = 1;
  bool a_is_weights = false;  // then it is transposed, and the epilogue adds the bias; else b is
  bool adds_bias = false;     // in the epilogue
  bool relu = false;
  // What C is; else there is none.
  enum class Added { nothing, bias, residual } added = Added::nothing;
};

// Values from one image of a tensor to the next.
struct ImagePitches {
  std::int64_t input = 0, residual = 0, output = 0;
};
// `shape`: with the channels that fill up places (filled_shape()), where they are last.
CublasltProblem product_of(const ConvShape& shape, int batch, const ImagePitches& pitches,
                           const TensorFormat& format = {});

}  // namespace burin
