#include "runtime/library/cudnn_convolution.h"

#include <algorithm>
#include <utility>

#include "ir/error.h"
#include "ir/library_call.h"
#include "runtime/library/cudnn_descriptor.h"

namespace burin {

namespace {

// A tensor of so many images; `pitch`: values from one to the next, 0 where they follow each other.
void set_images(const CudnnTable& table, CudnnObject tensor, const CudnnProblem& problem, int channels, int rows,
                int cols, std::int64_t pitch, const char* what) {
  const int type = static_cast<int>(problem.type);
  const std::int64_t image = std::int64_t{channels} * rows * cols;
  // Of one image nobody asks where the next one is.
  if (pitch == 0 || pitch == image || problem.batch == 1) {
    check_cudnn(
        table, table.set_tensor_4d(tensor, static_cast<int>(problem.layout), type, problem.batch, channels, rows, cols),
        "cudnnSetTensor4dDescriptor", what);
    return;
  }
  BURIN_CHECK(problem.layout == CudnnLayout::nchw, "images with a pitch are in nchw");
  check_cudnn(table,
              table.set_tensor_4d_ex(tensor, type, problem.batch, channels, rows, cols, static_cast<int>(pitch),
                                     rows * cols, cols, 1),
              "cudnnSetTensor4dDescriptorEx", what);
}

}  // namespace

// ---- handles

CudnnHandle::CudnnHandle(const DeviceState& device, const std::vector<std::string>& candidates)
    : device_(device), library_(candidates) {
  const ContextScope scope(device_);
  check_cudnn(table(), table().create(&handle_), "cudnnCreate",
              fmt::format("cuDNN {} from {} on {}", library_.version(), library_.path(), device_.info.name));
}

CudnnHandle::~CudnnHandle() {
  release_in_context(device_, [&](const DriverTable&) { table().destroy(handle_); });
}

std::shared_ptr<const CudnnHandle> CudnnHandles::get(const std::vector<std::string>& candidates) {
  const std::lock_guard lock(mutex_);
  auto opened = std::ranges::find(opened_, candidates, &Opened::candidates);
  if (opened == opened_.end()) {
    Opened made{candidates, nullptr, {}};
    try {
      made.handle = std::make_shared<const CudnnHandle>(device_, candidates);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::device) throw;
      made.fault = error.what();
    }
    opened = opened_.insert(opened_.end(), std::move(made));
  }
  if (opened->handle == nullptr) fail(ErrorKind::device, "{}", opened->fault);
  return opened->handle;
}

// ---- convolutions

struct CudnnConvolution::Descriptors {
  CudnnDescriptor input, filter, convolution, output;
  std::optional<CudnnDescriptor> residual, bias, activation;  // of a call that fuses

  explicit Descriptors(const CudnnTable& table)
      : input(table, table.create_tensor, table.destroy_tensor),
        filter(table, table.create_filter, table.destroy_filter),
        convolution(table, table.create_convolution, table.destroy_convolution),
        output(table, table.create_tensor, table.destroy_tensor) {}

  void set_convolution(const CudnnTable& table, const CudnnProblem& problem) const {
    const ConvShape& shape = problem.shape;
    set_images(table, input, problem, shape.in_channels, shape.in_h, shape.in_w, problem.input_pitch, "of the input");
    set_images(table, output, problem, shape.out_channels, shape.conv_h(), shape.conv_w(), problem.output_pitch,
               "of the output");
    check_cudnn(table,
                table.set_filter_4d(filter, static_cast<int>(problem.type), static_cast<int>(problem.layout),
                                    shape.out_channels, shape.channels_per_group(), shape.kernel_h, shape.kernel_w),
                "cudnnSetFilter4dDescriptor");
    // The type of the convolution is that of its sums.
    check_cudnn(table,
                table.set_convolution_2d(convolution, shape.pad.top, shape.pad.left, shape.stride_h, shape.stride_w,
                                         shape.dilation_h, shape.dilation_w, kCudnnCrossCorrelation,
                                         static_cast<int>(CudnnType::float32)),
                "cudnnSetConvolution2dDescriptor");
    check_cudnn(table, table.set_groups(convolution, shape.groups), "cudnnSetConvolutionGroupCount");
    check_cudnn(table, table.set_math(convolution, static_cast<int>(problem.math)), "cudnnSetConvolutionMathType");
  }

  void set_epilogue(const CudnnTable& table, const CudnnProblem& problem) {
    const ConvShape& shape = problem.shape;
    residual.emplace(table, table.create_tensor, table.destroy_tensor);
    set_images(table, *residual, problem, shape.out_channels, shape.conv_h(), shape.conv_w(),
               shape.epilogue.residual ? problem.residual_pitch : problem.output_pitch, "of the residual");
    bias.emplace(table, table.create_tensor, table.destroy_tensor);
    check_cudnn(table,
                table.set_tensor_4d(*bias, static_cast<int>(problem.layout), static_cast<int>(problem.type), 1,
                                    shape.out_channels, 1, 1),
                "cudnnSetTensor4dDescriptor", "of the bias");
    activation.emplace(table, table.create_activation, table.destroy_activation);
    const int mode = is_relu(shape.epilogue.function) ? kCudnnRelu : kCudnnIdentity;
    check_cudnn(table, table.set_activation(*activation, mode, kCudnnPropagateNan, 0), "cudnnSetActivationDescriptor");
  }
};

CudnnConvolution::CudnnConvolution(std::shared_ptr<const CudnnHandle> handle, const CudnnProblem& problem)
    : handle_(std::move(handle)) {
  const Epilogue& epilogue = problem.shape.epilogue;
  residual_ = problem.with_epilogue && epilogue.residual;
  fused_ = problem.with_epilogue && (epilogue.bias || epilogue.residual || epilogue.function);
  descriptors_ = std::make_unique<Descriptors>(handle_->table());
  descriptors_->set_convolution(handle_->table(), problem);
  if (fused_) descriptors_->set_epilogue(handle_->table(), problem);
}

CudnnConvolution::~CudnnConvolution() = default;

CudnnStatus CudnnConvolution::workspace_bytes(int algorithm, std::size_t& bytes) const {
  return handle_->with_handle([&](CudnnObject handle) {
    return handle_->table().workspace_size(handle, descriptors_->input, descriptors_->filter, descriptors_->convolution,
                                           descriptors_->output, algorithm, &bytes);
  });
}

CudnnStatus CudnnConvolution::enqueue(CUstream_st* stream, int algorithm, const CudnnPointers& pointers) const {
  constexpr float kOne = 1, kZero = 0;
  const Descriptors& of = *descriptors_;
  return handle_->with_stream(stream, [&](CudnnObject handle) {
    if (!fused_) {
      return handle_->table().forward(handle, &kOne, of.input, pointers.input, of.filter, pointers.weights,
                                      of.convolution, algorithm, pointers.workspace, pointers.workspace_bytes, &kZero,
                                      of.output, pointers.output);
    }
    // Without a residual the call is given the output itself, times zero, which it then does not read.
    const void* added = residual_ ? pointers.residual : pointers.output;
    return handle_->table().fused_forward(handle, &kOne, of.input, pointers.input, of.filter, pointers.weights,
                                          of.convolution, algorithm, pointers.workspace, pointers.workspace_bytes,
                                          residual_ ? &kOne : &kZero, *of.residual, added, *of.bias, pointers.bias,
                                          *of.activation, of.output, pointers.output);
  });
}

}  // namespace burin
