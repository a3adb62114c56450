#include "compiler/operators/plan_convolution.h"

#include <optional>
#include <utility>

#include "compiler/operators/plan_conv_dense.h"
#include "compiler/operators/plan_conv_depthwise.h"
#include "compiler/operators/plan_conv_streamed.h"

namespace burin {

std::vector<PlannedOperator> plan_convolution(const ConvLayer& layer, const OperatorRequest& request,
                                              double worthwhile_us) {
  std::vector<PlannedOperator> ways;
  const auto add = [&](std::optional<PlannedOperator> way) {
    if (way) ways.push_back(*std::move(way));
  };
  const bool pools = layer.shape.epilogue.pool.has_value();
  const bool depthwise = layer.shape.groups > 1 && layer.shape.channels_per_group() == 1;
  if (!pools) {
    add(depthwise ? plan_conv_depthwise(layer, request, worthwhile_us)
                  : plan_conv_dense(layer, request, worthwhile_us));
  }
  add(plan_conv_streamed(layer, request, worthwhile_us));
  return ways;
}

}  // namespace burin
