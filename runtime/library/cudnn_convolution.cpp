#include "runtime/library/cudnn_convolution.h"

#include <algorithm>
#include <utility>

#include "ir/error.h"
#include "ir/library_call.h"
#include "runtime/library/cudnn_descriptor.h"
#include "runtime/library/cudnn_engine.h"

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

// ---- calls of kernels

namespace {

CudnnType type_of(ElementType element) {
  if (element == ElementType::f32) return CudnnType::float32;
  return element == ElementType::f16 ? CudnnType::half : CudnnType::bfloat16;
}

CudnnMath math_of(FactorType factors) {
  if (factors == FactorType::f32) return CudnnMath::fp32;
  return factors == FactorType::tf32 ? CudnnMath::tf32_allowed : CudnnMath::tensor_cores;
}

int least_alignment(const KernelForm& form) {
  int least = kMaxCallAlignment;
  for (const KernelTensor& tensor : form.tensors) {
    const bool is_called = tensor.is_read() || tensor.role == TensorRole::output;
    if (is_called && tensor.exists()) least = std::min(least, tensor.alignment);
  }
  return least;
}

CudnnProblem problem_of(const Kernel& kernel, int batch) {
  const TensorFormat format = called_format(kernel.form);
  CudnnProblem problem{.shape = filled_shape(kernel.called_shape(), format),
                       .batch = batch,
                       .type = type_of(format.element),
                       .math = math_of(kernel.call->factors),
                       .with_epilogue = true,
                       .alignment = least_alignment(kernel.form)};
  if (has_channels_last(format.layout)) {  // whose images follow each other
    problem.layout = CudnnLayout::nhwc;
    return problem;
  }
  problem.input_pitch = image_pitch(kernel.form, TensorRole::input);
  problem.residual_pitch = image_pitch(kernel.form, TensorRole::residual);
  problem.output_pitch = image_pitch(kernel.form, TensorRole::output);
  return problem;
}

void check_workspace(std::size_t bytes, const LibraryCall& call) {
  if (bytes <= static_cast<std::size_t>(call.workspace_limit)) return;
  fail(ErrorKind::device, "it wants {} bytes of scratch memory, and its plan allows {}", bytes, call.workspace_limit);
}

CudnnPointers pointers_of(const CallWeights& weights, const CallPointers& pointers, std::size_t workspace_bytes) {
  return {.input = pointers.input,
          .weights = weights.weights,
          .bias = weights.bias,
          .residual = pointers.residual,
          .output = pointers.output,
          .workspace = pointers.workspace,
          .workspace_bytes = workspace_bytes};
}

class CudnnEngineLaunch : public LibraryLaunch {
 public:
  CudnnEngineLaunch(std::shared_ptr<const CudnnHandle> handle, const Kernel& kernel, const CallWeights& weights,
                    int batch)
      : name_(upper_case(to_string(kernel.call->algorithm))),
        engine_(std::move(handle), problem_of(kernel, batch),
                *engine_number(std::get<ConvolutionAlgorithm>(kernel.call->algorithm))),
        weights_(weights) {
    check_workspace(engine_.workspace_bytes(), *kernel.call);
  }

  std::int64_t workspace_bytes() const override { return static_cast<std::int64_t>(engine_.workspace_bytes()); }
  void enqueue(CUstream_st* stream, const CallPointers& pointers) const override {
    engine_.enqueue(stream, pointers_of(weights_, pointers, engine_.workspace_bytes()));
  }
  std::string what() const override { return fmt::format("cuDNN {} {}", engine_.handle().version(), name_); }

 private:
  std::string name_;
  CudnnEngine engine_;
  CallWeights weights_;
};

class CudnnLaunch : public LibraryLaunch {
 public:
  CudnnLaunch(std::shared_ptr<const CudnnHandle> handle, const Kernel& kernel, const CallWeights& weights, int batch)
      : convolution_(std::move(handle), problem_of(kernel, batch)),
        algorithm_(static_cast<int>(std::get<ConvolutionAlgorithm>(kernel.call->algorithm))),
        weights_(weights) {
    check_cudnn(convolution_.handle().table(), convolution_.workspace_bytes(algorithm_, workspace_bytes_),
                "cudnnGetConvolutionForwardWorkspaceSize");
    check_workspace(workspace_bytes_, *kernel.call);
  }

  std::int64_t workspace_bytes() const override { return static_cast<std::int64_t>(workspace_bytes_); }

  void enqueue(CUstream_st* stream, const CallPointers& pointers) const override {
    const CudnnStatus status =
        convolution_.enqueue(stream, algorithm_, pointers_of(weights_, pointers, workspace_bytes_));
    check_cudnn(convolution_.handle().table(), status,
                convolution_.is_fused() ? "cudnnConvolutionBiasActivationForward" : "cudnnConvolutionForward");
  }

  std::string what() const override {
    return fmt::format("cuDNN {} {}", convolution_.handle().version(), cudnn_algorithm_name(algorithm_));
  }

 private:
  CudnnConvolution convolution_;
  int algorithm_;
  CallWeights weights_;
  std::size_t workspace_bytes_ = 0;
};

}  // namespace

std::shared_ptr<const LibraryLaunch> CudnnHandle::launch(const Kernel& kernel, const CallWeights& weights,
                                                         int batch) const {
  if (engine_number(std::get<ConvolutionAlgorithm>(kernel.call->algorithm))) {
    return std::make_shared<const CudnnEngineLaunch>(shared_from_this(), kernel, weights, batch);
  }
  return std::make_shared<const CudnnLaunch>(shared_from_this(), kernel, weights, batch);
}

}  // namespace burin
