#include "compiler/operators/plan_conv_streamed.h"

#include <utility>

#include "compiler/operators/plan_parts.h"

namespace burin {

std::optional<PlannedOperator> plan_conv_streamed(const ConvLayer& layer, const OperatorRequest& request,
                                                  double worthwhile_us) {
  const ArchSpec& arch = arch_by_name(request.arch);
  if (!can_stream(layer.shape, arch)) return std::nullopt;
  const PlannedOperator started = start_convolution("conv_streamed", layer.shape, request);
  const auto way = choose_streamed(layer, request.batch, started.plan.input.aligned == kVectorWords, arch);
  if (!way || way->predicted_us >= worthwhile_us) return std::nullopt;
  return plan_conv_streamed(layer, request, *way);
}

PlannedOperator plan_conv_streamed(const ConvLayer& layer, const OperatorRequest& request, const ConvStreamedWay& way) {
  const ConvShape& shape = layer.shape;
  const ConvStreamed& shares = way.shares;
  PlannedOperator result = start_convolution("conv_streamed", shape, request);
  OperatorPlan& plan = result.plan;
  if (!shares.bulk) plan.input.aligned = 1;
  plan.threads = shares.warps() * kWarpSize;
  plan.shared_bytes = static_cast<int>(shares.shared_bytes(shape, way.share_words));
  plan.cluster_blocks = shares.splits;
  plan.group_blocks = shares.groups(shape) * shares.splits;
  const std::pair<const char*, std::int64_t> constants[] = {
      {"split_channels", shares.split_channels(shape)},
      {"out_channels", shape.out_channels},
      {"pixels", shape.conv_h() * shape.conv_w()},
      {"bulk", shares.bulk},
      {"compact", streams_compact(shape)},
      {"masked", shape.pad != Padding{}},
      {"margin_words", shares.margin_words(shape)},
      {"tail_words", shares.tail_words(shape)},
      {"block_rows", shares.block_rows},
      {"row_parts", shares.row_parts},
      {"share_words", way.share_words},
      {"means", takes_means(shape)},
  };
  for (const auto& [name, value] : constants) plan.integers[name] = static_cast<int>(value);
  result.weights = pack_streamed(layer, shares, way.share_words);
  plan.weight_words = static_cast<std::int64_t>(result.weights.size());
  result.predicted_us = way.predicted_us;
  return result;
}

}  // namespace burin
