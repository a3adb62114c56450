// Fully connected by cuBLASLt: each of the algorithms that it proposes is a candidate, with bias and relu in the same
// call. It reads float weights alone.
#include "compiler/providers/call_provider.h"

namespace burin {
namespace {

class LinearCublas : public CallProvider {
 public:
  LinearCublas() : CallProvider(kLinearCublasProvider) {}

 protected:
  bool is_for(const Task& task) const override {
    return task.get<Linear>() != nullptr && task.linear_storage == ElementType::f32;
  }
  std::vector<CallAlgorithm> algorithms() const override { return product_algorithms(); }
};

}  // namespace

const Provider& linear_cublas_provider() { return the_only<LinearCublas>(); }

}  // namespace burin
