// A convolution's plan for templates/operators/conv_dense.cu.
#pragma once

#include <optional>

#include "compiler/operators/conv_dense_tiles.h"
#include "compiler/operators/plan_operator.h"
#include "ir/conv_layer.h"

namespace burin {

// With the best tiles; nothing where that takes `worthwhile_us` or more.
std::optional<PlannedOperator> plan_conv_dense(const ConvLayer& layer, const OperatorRequest& request,
                                               double worthwhile_us);
// With these tiles, whose `vector` must be at most conv_dense_vector().
PlannedOperator plan_conv_dense(const ConvLayer& layer, const OperatorRequest& request, const ConvDenseTiles& tiles);

// Activations that one copy can bring, 1 or 4.
int conv_dense_vector(const ConvShape& shape, const OperatorRequest& request);

}  // namespace burin
