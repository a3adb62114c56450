#include "runtime/library/cudnn_library.h"

#include <array>

#include "ir/error.h"
#include "runtime/library/function_loader.h"

namespace burin {
std::string_view to_string(CudnnLayout layout) { return layout == CudnnLayout::nchw ? "NCHW" : "NHWC"; }

std::string cudnn_algorithm_name(int algorithm) {
  constexpr std::array<const char*, kCudnnForwardAlgorithms> kNames = {
      "IMPLICIT_GEMM", "IMPLICIT_PRECOMP_GEMM", "GEMM", "DIRECT", "FFT", "FFT_TILING", "WINOGRAD", "WINOGRAD_NONFUSED"};
  if (algorithm < 0 || algorithm >= kCudnnForwardAlgorithms) return fmt::format("algorithm {}", algorithm);
  return kNames[static_cast<std::size_t>(algorithm)];
}

std::string cudnn_version_text(std::size_t version) {
  // CUDNN_VERSION counts majors in ten thousands since 9, in thousands before.
  const std::size_t major_unit = version >= 90000 ? 10000 : 1000;
  return fmt::format("{}.{}.{}", version / major_unit, version % major_unit / 100, version % 100);
}

CudnnLibrary::CudnnLibrary(const std::vector<std::string>& candidates) {
  constexpr std::string_view kHelp =
      "install cuDNN 9 (the Python wheel nvidia-cudnn-cu12 or nvidia-cudnn-cu13 has it) and name its libcudnn.so.9 in "
      "BURIN_CUDNN";
  path_ = open_library("cuDNN", candidates, kHelp, [this](FunctionLoader& loader) {
    loader.load(table_.get_version, "cudnnGetVersion");
    loader.load(table_.get_error_string, "cudnnGetErrorString");
    loader.load(table_.create, "cudnnCreate");
    loader.load(table_.destroy, "cudnnDestroy");
    loader.load(table_.set_stream, "cudnnSetStream");
    loader.load(table_.create_tensor, "cudnnCreateTensorDescriptor");
    loader.load(table_.destroy_tensor, "cudnnDestroyTensorDescriptor");
    loader.load(table_.set_tensor_4d, "cudnnSetTensor4dDescriptor");
    loader.load(table_.set_tensor_4d_ex, "cudnnSetTensor4dDescriptorEx");
    loader.load(table_.set_tensor_nd, "cudnnSetTensorNdDescriptor");
    loader.load(table_.create_filter, "cudnnCreateFilterDescriptor");
    loader.load(table_.destroy_filter, "cudnnDestroyFilterDescriptor");
    loader.load(table_.set_filter_4d, "cudnnSetFilter4dDescriptor");
    loader.load(table_.create_convolution, "cudnnCreateConvolutionDescriptor");
    loader.load(table_.destroy_convolution, "cudnnDestroyConvolutionDescriptor");
    loader.load(table_.set_convolution_2d, "cudnnSetConvolution2dDescriptor");
    loader.load(table_.set_groups, "cudnnSetConvolutionGroupCount");
    loader.load(table_.set_math, "cudnnSetConvolutionMathType");
    loader.load(table_.workspace_size, "cudnnGetConvolutionForwardWorkspaceSize");
    loader.load(table_.forward, "cudnnConvolutionForward");
    loader.load(table_.create_activation, "cudnnCreateActivationDescriptor");
    loader.load(table_.destroy_activation, "cudnnDestroyActivationDescriptor");
    loader.load(table_.set_activation, "cudnnSetActivationDescriptor");
    loader.load(table_.fused_forward, "cudnnConvolutionBiasActivationForward");
    loader.load(table_.create_pooling, "cudnnCreatePoolingDescriptor");
    loader.load(table_.destroy_pooling, "cudnnDestroyPoolingDescriptor");
    loader.load(table_.set_pooling_2d, "cudnnSetPooling2dDescriptor");
    loader.load(table_.pool, "cudnnPoolingForward");
    loader.load(table_.softmax, "cudnnSoftmaxForward");
    loader.load(table_.transform, "cudnnTransformTensor");
    loader.load(table_.backend_create, "cudnnBackendCreateDescriptor");
    loader.load(table_.backend_destroy, "cudnnBackendDestroyDescriptor");
    loader.load(table_.backend_finalize, "cudnnBackendFinalize");
    loader.load(table_.backend_set, "cudnnBackendSetAttribute");
    loader.load(table_.backend_get, "cudnnBackendGetAttribute");
    loader.load(table_.backend_execute, "cudnnBackendExecute");
  });
}

void check_cudnn(const CudnnTable& table, CudnnStatus status, std::string_view call, std::string_view context) {
  if (status == kCudnnSuccess) return;
  const char* text = table.get_error_string(status);
  fail(ErrorKind::device, "{} failed: {} ({}){}{}", call, text == nullptr ? "no text for it" : text, status,
       context.empty() ? "" : "; ", context);
}

}  // namespace burin
