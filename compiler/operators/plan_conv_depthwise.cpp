#include "compiler/operators/plan_conv_depthwise.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "compiler/operators/plan_parts.h"
#include "ir/saturate.h"

namespace burin {
namespace {

constexpr int kMaxTaps = 25, kMaxThreadRows = 4;  // templates/operators/conv_depthwise.cu

// As many outputs below each other as share rows of the input, where all multiprocessors are full without.
int thread_rows(const ConvShape& shape, int batch, const ArchSpec& arch) {
  if (shape.stride_h >= shape.kernel_h || shape.dilation_h > 1) return 1;
  const std::int64_t full = std::int64_t{arch.multiprocessors} * arch.max_threads_per_multiprocessor;
  const std::int64_t rounds = shape.output_elements() * batch / full;
  for (int rows = kMaxThreadRows; rows > 1; rows /= 2) {
    if (rounds >= 2 * rows && shape.out_h() >= rows) return rows;
  }
  return 1;
}

// Reading and writing at the rate of the L2 cache, or of memory where the tensors do not fit, and the loads that each
// thread issues. Fitted to MobileNet's layers on an H200 (docs/performance.md).
double predict(const ConvShape& shape, int rows, int batch, const ArchSpec& arch) {
  constexpr double kLaunchUs = 1.6, kLoadsPerClock = 16;  // of a multiprocessor
  constexpr double kCacheBytes = 10e6, kDeviceShare = 0.8, kWordBytes = 4;
  const double clocks_of_us = arch.clock_ghz * 1e3;
  const double outputs = static_cast<double>(shape.output_elements()) * batch;
  const double bytes = kWordBytes * (outputs + static_cast<double>(shape.input_elements()) * batch);
  const double rate = bytes < kCacheBytes ? arch.l2_bytes_per_clock : kDeviceShare * arch.device_bytes_per_clock;
  const double rows_read = (rows - 1) * shape.stride_h + shape.kernel_h;
  const double loads = outputs / rows * rows_read * shape.kernel_w;
  return kLaunchUs + (bytes / rate + loads / (kLoadsPerClock * arch.multiprocessors)) / clocks_of_us;
}

// As templates/operators/conv_depthwise.cu reads them.
std::vector<std::uint32_t> pack(const ConvLayer& layer) {
  const std::size_t taps = layer.weights.size() / static_cast<std::size_t>(layer.shape.out_channels);
  const auto pitch = static_cast<std::size_t>(round_up(static_cast<std::int64_t>(taps) + 1, kVectorWords));
  std::vector<std::uint32_t> words(pitch * static_cast<std::size_t>(layer.shape.out_channels));
  for (std::size_t k = 0; k < words.size() / pitch; ++k) {
    for (std::size_t i = 0; i < taps; ++i)
      words[k * pitch + i] = std::bit_cast<std::uint32_t>(layer.weights[k * taps + i]);
    words[k * pitch + taps] = std::bit_cast<std::uint32_t>(layer.bias.empty() ? 0.0F : layer.bias[k]);
  }
  return words;
}

}  // namespace

std::optional<PlannedOperator> plan_conv_depthwise(const ConvLayer& layer, const OperatorRequest& request,
                                                   double worthwhile_us) {
  const ConvShape& shape = layer.shape;
  const ArchSpec& arch = arch_by_name(request.arch);
  if (shape.channels_per_group() != 1 || shape.kernel_h * shape.kernel_w > kMaxTaps) return std::nullopt;
  const int rows = thread_rows(shape, request.batch, arch);
  PlannedOperator result = start_convolution("conv_depthwise", shape, request);
  result.predicted_us = predict(shape, rows, request.batch, arch);
  if (result.predicted_us >= worthwhile_us) return std::nullopt;
  OperatorPlan& plan = result.plan;
  plan.input.aligned = 1;
  const std::pair<const char*, int> constants[] = {
      {"channels", shape.out_channels},
      {"out_rows", shape.out_h()},
      {"thread_rows", rows},
      {"outputs_per_channel", shape.outputs_per_group()},
  };
  for (const auto& [name, value] : constants) plan.integers[name] = value;
  set_items(plan, std::int64_t{shape.out_channels} * ceil_div(shape.out_h(), rows) * shape.out_w());
  result.weights = pack(layer);
  plan.weight_words = static_cast<std::int64_t>(result.weights.size());
  return result;
}

}  // namespace burin
