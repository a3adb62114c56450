#include "compiler/choose_convolution.h"

#include <algorithm>
#include <map>
#include <utility>

#include "compiler/operators/plan_convolution.h"
#include "compiler/packaged_kernel.h"
#include "ir/arch.h"
#include "ir/error.h"
#include "ir/sparse_pattern.h"

namespace burin {
namespace {

// What baked code surely does not take, from nothing but sizes: it is launched, its multiply-adds are issued, its code
// and its tensors are fetched, each at a fraction of the rate that it reaches.
double most_baked_us(const ConvShape& shape, std::int64_t nonzeros, int batch, const ArchSpec& arch) {
  constexpr double kLaunches = 1.3, kIssues = 4, kFetches = 3, kTransfers = 3;  // times what each takes at best
  constexpr double kClocksOfUs = 1e3;                                           // at 1 GHz
  const double clocks = arch.clock_ghz * kClocksOfUs;
  const double code = static_cast<double>(nonzeros);
  const double pixels = static_cast<double>(shape.conv_h()) * shape.conv_w() * batch;
  const double issue = code * pixels / (arch.fma_lanes_per_clock * arch.multiprocessors);
  const double bytes = static_cast<double>(shape.input_elements() + shape.output_elements()) * batch *
                       static_cast<double>(sizeof(float));
  return kLaunches * arch.launch_us + (kIssues * issue + kFetches * code / arch.chip_fetch_per_clock +
                                       kTransfers * bytes / arch.l2_bytes_per_clock) /
                                          clocks;
}

// The median of the layer's tuned plan; nothing where it was not tuned.
std::optional<double> measured_us(const ConvLayer& layer, int batch, const CompileOptions& options) {
  const TunedPlan* tuned = find_tuned(options.tuned, layer.name, batch);
  if (tuned == nullptr) return std::nullopt;
  return tuned->evidence.candidates.at(static_cast<std::size_t>(tuned->evidence.chosen)).cold_us;
}

// Nothing where no plan can serve the layer.
std::optional<KernelPlan> plan_baked(const ConvLayer& layer, int batch, const CompileOptions& options) {
  try {
    return make_plan(layer, analyse(layer), plan_request(options, batch));
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::unsupported) throw;
    return std::nullopt;
  }
}

KernelOption option_of(const PlannedOperator& planned) { return {planned.plan.template_name, planned.predicted_us}; }

// Launched, its input read and its output written.
double pool_alone_us(const ConvShape& pooled, int batch, const ArchSpec& arch) {
  constexpr double kClocksOfUs = 1e3;  // at 1 GHz
  const double bytes = static_cast<double>(pooled.conv_elements() + pooled.output_elements()) * batch *
                       static_cast<double>(sizeof(float));
  return arch.launch_us + bytes / arch.device_bytes_per_clock / (arch.clock_ghz * kClocksOfUs);
}

std::optional<PlannedOperator> forced_way(const ConvLayer& layer, const std::string& wanted,
                                          const OperatorRequest& request) {
  std::vector<PlannedOperator> ways = plan_convolution(layer, request);
  const auto found =
      std::ranges::find_if(ways, [&](const PlannedOperator& way) { return way.plan.template_name == wanted; });
  return found == ways.end() ? std::nullopt : std::optional(std::move(*found));
}

// The template that was asked for; baked where it cannot and the layer was not named.
ConvolutionChoice forced(const ConvLayer& layer, const std::string& wanted, const OperatorRequest& request,
                         const CompileOptions& options) {
  ConvolutionChoice choice;
  if (std::optional<PlannedOperator> way = forced_way(layer, wanted, request)) {
    choice.options = {option_of(*way)};
    choice.planned = std::move(*way);
  } else if (options.kernels.of_layers.contains(layer.name)) {
    fail(ErrorKind::unsupported, "--kernels {}={}: {} cannot compute {}; baked code can", layer.name,
         wanted.substr(wanted.find('_') + 1), wanted, describe(layer.shape));
  }
  return choice;
}

bool stays_apart(const ConvLayer& layer, const Pool& pool, const CompileOptions& options) {
  const std::string& kind = options.kernels.of(layer.name);
  if (kind == kBakedTemplate) return false;
  OperatorRequest request{.batch = options.batches.front(), .arch = lowest_arch(options.archs)};
  ConvLayer pooled = layer;
  pooled.shape.epilogue.pool = pool;
  if (kind != kAutoKind) return forced_way(layer, kind, request) && !forced_way(pooled, kind, request);
  const auto nonzeros =
      static_cast<std::int64_t>(std::ranges::count_if(layer.weights, [](float weight) { return weight != 0; }));
  const ArchSpec& arch = arch_by_name(request.arch);
  return std::ranges::all_of(options.batches, [&](int batch) {
    request.batch = batch;
    const double pool_us = pool_alone_us(pooled.shape, batch, arch);
    const double most = most_baked_us(pooled.shape, nonzeros, batch, arch) - pool_us;
    const std::vector<PlannedOperator> ways = plan_convolution(layer, request, most);
    if (ways.empty()) return false;
    const double apart = std::ranges::min_element(ways, {}, &PlannedOperator::predicted_us)->predicted_us + pool_us;
    if (!plan_convolution(pooled, request, apart).empty()) return false;
    const std::optional<KernelPlan> baked = plan_baked(pooled, batch, options);
    return !baked || apart < baked->predicted_us;
  });
}

}  // namespace

ConvolutionChoice choose_convolution(const ConvLayer& layer, std::int64_t nonzeros, const OperatorRequest& request,
                                     const CompileOptions& options) {
  const std::string& kind = options.kernels.of(layer.name);
  if (kind == kBakedTemplate) return {};
  if (kind != kAutoKind) return forced(layer, kind, request, options);
  std::optional<double> baked = measured_us(layer, request.batch, options);
  const double most = baked ? *baked : most_baked_us(layer.shape, nonzeros, request.batch, arch_by_name(request.arch));
  std::vector<PlannedOperator> ways = plan_convolution(layer, request, most);
  if (ways.empty()) return {};
  std::ranges::stable_sort(ways, {}, &PlannedOperator::predicted_us);
  ConvolutionChoice choice;
  for (const PlannedOperator& way : ways) choice.options.push_back(option_of(way));
  if (!baked) {
    choice.baked = plan_baked(layer, request.batch, options);
    if (choice.baked) baked = choice.baked->predicted_us;
  }
  if (baked) {
    const auto faster = std::ranges::find_if(choice.options, [&](const auto& o) { return o.predicted_us >= *baked; });
    choice.options.insert(faster, {std::string(kBakedTemplate), *baked});
  }
  if (choice.options.front().template_name != kBakedTemplate) choice.planned = std::move(ways.front());
  return choice;
}

StaysApart pools_that_stay_apart(const CompileOptions& options) {
  // simplify() asks in every round.
  return [&options, known = std::map<std::pair<std::string, std::string>, bool>()](
             const std::string& op, const ConvLayer& layer, const Pool& pool) mutable {
    const auto [entry, is_new] = known.try_emplace({op, layer.name});
    if (is_new) entry->second = stays_apart(layer, pool, options);
    return entry->second;
  };
}

}  // namespace burin
