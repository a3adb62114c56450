// Convolutions by cuDNN: each of its forward algorithms is a candidate, with bias, residual and relu in the same call.
#include "compiler/providers/call_provider.h"

namespace burin {
namespace {

class ConvCudnn : public CallProvider {
 public:
  ConvCudnn() : CallProvider(kCudnnProvider) {}

 protected:
  bool is_for(const Task& task) const override { return is_called_convolution(task); }

  // Of the general ones the one comes first that is fast most often.
  std::vector<CallAlgorithm> algorithms() const override {
    using enum ConvolutionAlgorithm;
    return {implicit_precomp_gemm, implicit_gemm, winograd, winograd_nonfused, gemm, fft_tiling, fft, direct};
  }

  // It has one of the algorithms for tensors whose channels are last.
  bool may_serve(const CallAlgorithm& algorithm, const TensorFormat& format) const override {
    return format.is_plain() ||
           std::get<ConvolutionAlgorithm>(algorithm) == ConvolutionAlgorithm::implicit_precomp_gemm;
  }

  bool may_serve(const CallAlgorithm& algorithm, const ConvShape& shape) const override {
    const bool unit_steps =
        shape.stride_h == 1 && shape.stride_w == 1 && shape.dilation_h == 1 && shape.dilation_w == 1;
    const auto is_square = [&](int extent) { return shape.kernel_h == extent && shape.kernel_w == extent; };
    const Epilogue& epilogue = shape.epilogue;
    const bool is_fused_identity = (epilogue.bias || epilogue.residual) && !epilogue.function;
    switch (std::get<ConvolutionAlgorithm>(algorithm)) {
      case ConvolutionAlgorithm::implicit_precomp_gemm:
        return true;
      case ConvolutionAlgorithm::implicit_gemm:
      case ConvolutionAlgorithm::gemm:
      case ConvolutionAlgorithm::direct:
        return !is_fused_identity;  // fused calls know no other algorithm without an activation
      case ConvolutionAlgorithm::fft:
      case ConvolutionAlgorithm::fft_tiling:
        return unit_steps && !is_fused_identity;
      case ConvolutionAlgorithm::winograd:
        return unit_steps && is_square(3) && !is_fused_identity;
      case ConvolutionAlgorithm::winograd_nonfused:
        return unit_steps && (is_square(3) || is_square(5)) && !is_fused_identity;
    }
    return false;
  }
};

}  // namespace

const Provider& conv_cudnn_provider() { return the_only<ConvCudnn>(); }

}  // namespace burin
