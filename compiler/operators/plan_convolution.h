// Kernels that compute a convolution with its weights as data, in the place of code that is baked from them.
#pragma once

#include <limits>
#include <vector>

#include "compiler/operators/plan_operator.h"
#include "ir/conv_layer.h"

namespace burin {

// Of each template that can compute the layer its best plan, with the predicted time; none for
// most layers that pool their outputs, which only baked code computes, and none of those that take `worthwhile_us` or
// more: weights are packed only for what is worth it. The request's inputs are the layer's input and, where it has one,
// its residual.
std::vector<PlannedOperator> plan_convolution(const ConvLayer& layer, const OperatorRequest& request,
                                              double worthwhile_us = std::numeric_limits<double>::infinity());

}  // namespace burin
