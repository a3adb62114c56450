#include "compiler/operators/plan_convolution.h"

#include <optional>
#include <utility>

#include "compiler/operators/plan_conv_dense.h"

namespace burin {

std::vector<PlannedOperator> plan_convolution(const ConvLayer& layer, const OperatorRequest& request,
                                              double worthwhile_us) {
  if (layer.shape.epilogue.pool) return {};
  std::vector<PlannedOperator> ways;
  const auto add = [&](std::optional<PlannedOperator> way) {
    if (way) ways.push_back(*std::move(way));
  };
  const bool depthwise = layer.shape.groups > 1 && layer.shape.channels_per_group() == 1;
  if (!depthwise) add(plan_conv_dense(layer, request, worthwhile_us));
  return ways;
}

}  // namespace burin
