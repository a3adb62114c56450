// Convolutions by cuDNN: each of its forward algorithms is a candidate, and so are the engines of its graph API, with
// bias, residual and relu in the same call.
#include "compiler/providers/call_provider.h"

namespace burin {
namespace {

class ConvCudnn : public CallProvider {
 public:
  ConvCudnn() : CallProvider(kCudnnProvider) {}

 protected:
  bool is_for(const Task& task) const override { return is_called_convolution(task); }

  // The one comes first that is general and fast most often.
  std::vector<CallAlgorithm> algorithms() const override {
    using enum ConvolutionAlgorithm;
    return {implicit_precomp_gemm, engine_0, engine_1,   engine_2, engine_3, implicit_gemm, winograd,
            winograd_nonfused,     gemm,     fft_tiling, fft,      direct};
  }

  // It has one of the algorithms for tensors whose channels are last. Engines may round floats to TF32.
  bool may_serve(const CallAlgorithm& algorithm, const TensorFormat& format, FactorType factors) const override {
    const auto which = std::get<ConvolutionAlgorithm>(algorithm);
    if (engine_number(which)) return factors != FactorType::f32;
    return format.is_plain() || which == ConvolutionAlgorithm::implicit_precomp_gemm;
  }

  bool may_serve(const CallAlgorithm& algorithm, const ConvShape& shape) const override {
    const bool unit_steps =
        shape.stride_h == 1 && shape.stride_w == 1 && shape.dilation_h == 1 && shape.dilation_w == 1;
    const auto is_square = [&](int extent) { return shape.kernel_h == extent && shape.kernel_w == extent; };
    const Epilogue& epilogue = shape.epilogue;
    const bool is_fused_identity = (epilogue.bias || epilogue.residual) && !epilogue.function;
    switch (std::get<ConvolutionAlgorithm>(algorithm)) {
      case ConvolutionAlgorithm::implicit_precomp_gemm:
      case ConvolutionAlgorithm::engine_0:
      case ConvolutionAlgorithm::engine_1:
      case ConvolutionAlgorithm::engine_2:
      case ConvolutionAlgorithm::engine_3:
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
