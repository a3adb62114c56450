#include "runtime/library/cudnn_library.h"

#include <dlfcn.h>
#include <link.h>

#include <array>
#include <type_traits>

#include "ir/error.h"

namespace burin {
namespace {

std::string path_of(void* library, const std::string& fallback) {
  link_map* map = nullptr;
  const bool known = dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr && map->l_name != nullptr;
  return known && map->l_name[0] != '\0' ? map->l_name : fallback;
}

}  // namespace

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
  std::string why;
  for (const std::string& candidate : candidates) {
    const std::string fault = open(candidate);
    if (fault.empty()) return;
    why += fmt::format("{}{}", why.empty() ? "" : "; ", fault);
  }
  fail(ErrorKind::device,
       "no cuDNN: {}; install cuDNN 9 (the Python wheel nvidia-cudnn-cu12 or nvidia-cudnn-cu13 has it) and name its "
       "libcudnn.so.9 in BURIN_CUDNN",
       why.empty() ? "no library to try" : why);
}

std::string CudnnLibrary::open(const std::string& candidate) {
  // Never closed: cuDNN keeps state of its own in threads and in the context.
  void* library = dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* text = dlerror();
    return text == nullptr ? candidate + ": cannot be opened" : text;
  }
  path_ = path_of(library, candidate);
  std::string missing;
  const auto load = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    if (function == nullptr) missing += fmt::format("{}{}", missing.empty() ? "" : ", ", name);
  };
  load(table_.get_version, "cudnnGetVersion");
  load(table_.get_error_string, "cudnnGetErrorString");
  load(table_.create, "cudnnCreate");
  load(table_.destroy, "cudnnDestroy");
  load(table_.set_stream, "cudnnSetStream");
  load(table_.create_tensor, "cudnnCreateTensorDescriptor");
  load(table_.destroy_tensor, "cudnnDestroyTensorDescriptor");
  load(table_.set_tensor_4d, "cudnnSetTensor4dDescriptor");
  load(table_.set_tensor_4d_ex, "cudnnSetTensor4dDescriptorEx");
  load(table_.set_tensor_nd, "cudnnSetTensorNdDescriptor");
  load(table_.create_filter, "cudnnCreateFilterDescriptor");
  load(table_.destroy_filter, "cudnnDestroyFilterDescriptor");
  load(table_.set_filter_4d, "cudnnSetFilter4dDescriptor");
  load(table_.create_convolution, "cudnnCreateConvolutionDescriptor");
  load(table_.destroy_convolution, "cudnnDestroyConvolutionDescriptor");
  load(table_.set_convolution_2d, "cudnnSetConvolution2dDescriptor");
  load(table_.set_groups, "cudnnSetConvolutionGroupCount");
  load(table_.set_math, "cudnnSetConvolutionMathType");
  load(table_.workspace_size, "cudnnGetConvolutionForwardWorkspaceSize");
  load(table_.forward, "cudnnConvolutionForward");
  load(table_.create_activation, "cudnnCreateActivationDescriptor");
  load(table_.destroy_activation, "cudnnDestroyActivationDescriptor");
  load(table_.set_activation, "cudnnSetActivationDescriptor");
  load(table_.fused_forward, "cudnnConvolutionBiasActivationForward");
  load(table_.create_pooling, "cudnnCreatePoolingDescriptor");
  load(table_.destroy_pooling, "cudnnDestroyPoolingDescriptor");
  load(table_.set_pooling_2d, "cudnnSetPooling2dDescriptor");
  load(table_.pool, "cudnnPoolingForward");
  load(table_.softmax, "cudnnSoftmaxForward");
  load(table_.transform, "cudnnTransformTensor");
  if (missing.empty()) return {};
  std::string fault = fmt::format("{}: lacks {}", path_, missing);
  dlclose(library);
  return fault;
}

void check_cudnn(const CudnnTable& table, CudnnStatus status, std::string_view call, std::string_view context) {
  if (status == kCudnnSuccess) return;
  const char* text = table.get_error_string(status);
  fail(ErrorKind::device, "{} failed: {} ({}){}{}", call, text == nullptr ? "no text for it" : text, status,
       context.empty() ? "" : "; ", context);
}

}  // namespace burin
