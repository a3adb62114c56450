// Convolutions of few pixels whose nonzeros are data: templates/operators/conv_streamed.cu.
#pragma once

#include <optional>

#include "compiler/operators/conv_streamed.h"
#include "compiler/operators/plan_operator.h"
#include "ir/conv_layer.h"

namespace burin {

// Nothing where the template cannot compute the layer, or takes `worthwhile_us` or more.
std::optional<PlannedOperator> plan_conv_streamed(const ConvLayer& layer, const OperatorRequest& request,
                                                  double worthwhile_us);
// With shares that price_streamed() has a price for.
PlannedOperator plan_conv_streamed(const ConvLayer& layer, const OperatorRequest& request, const ConvStreamedWay& way);

}  // namespace burin
