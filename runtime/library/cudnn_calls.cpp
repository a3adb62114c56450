#include "runtime/library/cudnn_calls.h"

#include <utility>
#include <vector>

#include "ir/error.h"
#include "ir/saturate.h"
#include "runtime/library/cudnn_descriptor.h"

namespace burin {
namespace {

constexpr float kScale = 1, kAdded = 0;  // alpha and beta: the output is what is computed, and nothing is added

// What a call is told of its tensors.
struct TensorPair {
  CudnnDescriptor input, output;
  explicit TensorPair(const CudnnTable& table)
      : input(table, table.create_tensor, table.destroy_tensor),
        output(table, table.create_tensor, table.destroy_tensor) {}
};

struct PoolDescriptors : TensorPair {
  CudnnDescriptor pool;
  explicit PoolDescriptors(const CudnnTable& table)
      : TensorPair(table), pool(table, table.create_pooling, table.destroy_pooling) {}
};

void set_image(const CudnnTable& table, CudnnObject tensor, const CudnnTensors& as, std::int64_t channels,
               std::int64_t rows, std::int64_t cols, const char* what) {
  check_cudnn(table,
              table.set_tensor_4d(tensor, static_cast<int>(as.layout), static_cast<int>(as.type), as.images,
                                  saturate_to_int(channels), saturate_to_int(rows), saturate_to_int(cols)),
              "cudnnSetTensor4dDescriptor", what);
}

int pool_mode(const Pool& pool) {
  if (pool.kind == PoolKind::max) return kCudnnPoolMax;
  return pool.count_padding ? kCudnnPoolAverageWithPadding : kCudnnPoolAverageWithoutPadding;
}

// Descriptors have at least four axes; those that are not there stand first.
void set_moved(const CudnnTable& table, CudnnObject tensor, const MovedTensor& moved, CudnnType type,
               std::int64_t MovedAxis::* step, const char* what) {
  constexpr std::size_t kLeastAxes = 4;
  const std::size_t axes = std::max(kLeastAxes, moved.axes.size());
  const std::size_t filled = axes - moved.axes.size();
  std::vector<int> extents(axes, 1), steps(axes, 1);
  for (std::size_t i = 0; i < moved.axes.size(); ++i) {
    extents[filled + i] = saturate_to_int(moved.axes[i].extent);
    steps[filled + i] = saturate_to_int(moved.axes[i].*step);
  }
  // Nobody goes along an axis of one element, but steps that grow outwards are what libraries expect.
  for (std::size_t i = filled; i-- > 0;) steps[i] = saturate_to_int(std::int64_t{steps[i + 1]} * extents[i + 1]);
  check_cudnn(table,
              table.set_tensor_nd(tensor, static_cast<int>(type), static_cast<int>(axes), extents.data(), steps.data()),
              "cudnnSetTensorNdDescriptor", what);
}

}  // namespace

CudnnCall cudnn_pool(std::shared_ptr<const CudnnHandle> handle, const PooledImage& pooled,
                     const CudnnTensors& tensors) {
  const CudnnTable& table = handle->table();
  const Pool& pool = pooled.pool;
  const auto of = std::make_shared<const PoolDescriptors>(table);
  set_image(table, of->input, tensors, pooled.channels, pooled.rows, pooled.cols, "of the input");
  set_image(table, of->output, tensors, pooled.channels, pooled_rows(pool, pooled.rows), pooled_cols(pool, pooled.cols),
            "of the output");
  check_cudnn(table,
              table.set_pooling_2d(of->pool, pool_mode(pool), kCudnnPropagateNan, pool.kernel_h, pool.kernel_w,
                                   pool.pad.top, pool.pad.left, pool.stride_h, pool.stride_w),
              "cudnnSetPooling2dDescriptor");
  return [handle = std::move(handle), of](CUstream_st* stream, const void* input, void* output) {
    return handle->with_stream(stream, [&](CudnnObject object) {
      return handle->table().pool(object, of->pool, &kScale, of->input, input, &kAdded, of->output, output);
    });
  };
}

CudnnCall cudnn_softmax(std::shared_ptr<const CudnnHandle> handle, const SoftmaxImage& softmax,
                        const CudnnTensors& tensors) {
  const CudnnTable& table = handle->table();
  const auto of = std::make_shared<const TensorPair>(table);
  for (const CudnnDescriptor* tensor : {&of->input, &of->output}) {
    set_image(table, *tensor, tensors, softmax.channels, softmax.pixels, 1, "of softmax");
  }
  const int mode = softmax.pixels == 1 ? kCudnnSoftmaxInstance : kCudnnSoftmaxChannel;
  return [handle = std::move(handle), of, mode](CUstream_st* stream, const void* input, void* output) {
    return handle->with_stream(stream, [&](CudnnObject object) {
      return handle->table().softmax(object, kCudnnSoftmaxAccurate, mode, &kScale, of->input, input, &kAdded,
                                     of->output, output);
    });
  };
}

CudnnCall cudnn_transform(std::shared_ptr<const CudnnHandle> handle, const MovedTensor& moved, CudnnType type) {
  const CudnnTable& table = handle->table();
  if (moved.axes.size() > kCudnnMostAxes) {
    fail(ErrorKind::device, "cuDNN moves along at most {} axes, and these are {}", kCudnnMostAxes, moved.axes.size());
  }
  const auto of = std::make_shared<const TensorPair>(table);
  set_moved(table, of->input, moved, type, &MovedAxis::in_step, "of the input");
  set_moved(table, of->output, moved, type, &MovedAxis::out_step, "of the output");
  return [handle = std::move(handle), of](CUstream_st* stream, const void* input, void* output) {
    return handle->with_stream(stream, [&](CudnnObject object) {
      return handle->table().transform(object, &kScale, of->input, input, &kAdded, of->output, output);
    });
  };
}

}  // namespace burin
