// Depthwise convolutions whose filters are data: templates/operators/conv_depthwise.cu.
#pragma once

#include <optional>

#include "compiler/operators/plan_operator.h"
#include "ir/conv_layer.h"

namespace burin {

// Nothing where the template cannot compute the layer, or takes `worthwhile_us` or more.
std::optional<PlannedOperator> plan_conv_depthwise(const ConvLayer& layer, const OperatorRequest& request,
                                                   double worthwhile_us);

}  // namespace burin
