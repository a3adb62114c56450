// Which kernel a convolution of a network gets: baked code, or a template with the weights as data.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/compile.h"
#include "compiler/network/passes.h"
#include "compiler/operators/plan_operator.h"
#include "ir/conv_layer.h"
#include "ir/kernel_plan.h"
#include "ir/package/network_record.h"

namespace burin {

struct ConvolutionChoice {
  std::optional<PlannedOperator> planned;  // nothing: it is baked
  std::optional<KernelPlan> baked;         // the plan of the baked code, where it was made for the comparison
  std::vector<KernelOption> options;       // what was compared, the chosen one first
};

// By the predicted times; that of a tuned plan is measured. A baked plan takes time to make, so that is only done where
// another template might be faster. `request` says where the tensors lie. Throws Error(unsupported) where
// CompileOptions::kernels names a template for the layer that cannot compute it.
ConvolutionChoice choose_convolution(const ConvLayer& layer, std::int64_t nonzeros, const OperatorRequest& request,
                                     const CompileOptions& options);

// Which pools behind a convolution are to be kernels of their own: most kernels with weights as data cannot pool. There
// the layer and the pool apart are predicted to take less time together, for every batch size, than what can, or
// CompileOptions::kernels asks for such a kernel. `options` must outlive it.
StaysApart pools_that_stay_apart(const CompileOptions& options);

}  // namespace burin
