// Convolutions with 1x1 filters by cuBLASLt, a product of matrices for each image: each of the algorithms that it
// proposes is a candidate, with relu, and bias or residual, in the same call.
#include "compiler/providers/call_provider.h"

namespace burin {
namespace {

class ConvCublas : public CallProvider {
 public:
  ConvCublas() : CallProvider(kConvCublasProvider) {}

 protected:
  bool is_for(const Task& task) const override { return is_called_convolution(task); }
  std::vector<CallAlgorithm> algorithms() const override { return product_algorithms(); }
};

}  // namespace

const Provider& conv_cublas_provider() { return the_only<ConvCublas>(); }

}  // namespace burin
