#include "compiler/choose_convolution.h"

#include <algorithm>

#include "compiler/operators/plan_convolution.h"
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
  const double pixels = static_cast<double>(shape.out_h()) * shape.out_w() * batch;
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

// The template that was asked for; baked where it cannot and the layer was not named.
ConvolutionChoice forced(const ConvLayer& layer, const std::string& wanted, const OperatorRequest& request,
                         const CompileOptions& options) {
  ConvolutionChoice choice;
  std::vector<PlannedOperator> ways = plan_convolution(layer, request);
  const auto found =
      std::ranges::find_if(ways, [&](const PlannedOperator& way) { return way.plan.template_name == wanted; });
  if (found != ways.end()) {
    choice.options = {option_of(*found)};
    choice.planned = std::move(*found);
  } else if (options.kernels.of_layers.contains(layer.name)) {
    fail(ErrorKind::unsupported, "--kernels {}={}: {} cannot compute {}; baked code can", layer.name,
         wanted.substr(wanted.find('_') + 1), wanted, describe(layer.shape));
  }
  return choice;
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

}  // namespace burin
