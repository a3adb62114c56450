#include "test/codegen/host_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "compiler/dead_channels.h"
#include "compiler/host/executor.h"
#include "compiler/providers/conv_baked/plan/planner.h"
#include "compiler/providers/conv_baked/slices/specialise_baked.h"
#include "compiler/reference.h"
#include "ir/baked_plan_activity.h"
#include "ir/derive_form.h"
#include "ir/element_type.h"
#include "ir/error.h"

using namespace burin;

namespace burin_test {
namespace {

// A tensor as the plan's kernel has it in memory, with NaN in all that fills up: a sum that takes one in is NaN.
std::vector<float> words_of(const BakedPlan& plan, TensorLayout layout, const std::vector<float>& nchw, int channels,
                            int rows, int cols) {
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  return pack_words(element_of(plan.precision), from_nchw(layout, nchw, channels, rows, cols, kNaN));
}

ActivityExtent output_extent(const ConvShape& shape, int batch) {
  return {batch, shape.out_channels, shape.out_h(), shape.out_w()};
}

// What a launch is given beside the tensors.
struct Maps {
  std::vector<std::uint8_t> input, output;  // empty: none
};

// Of `reference_input`, which is what the kernel should take `input` for.
std::string run_on(HostKernel& kernel, const ConvLayer& layer, const BakedPlan& plan, int longest_reduction, int batch,
                   const std::vector<float>& input, const std::vector<float>& reference_input,
                   const std::vector<float>& residual, Maps maps) {
  constexpr std::uint8_t kUnwritten = 0xA5;
  const ConvShape& shape = layer.shape;
  const int channels = shape.out_channels, rows = shape.out_h(), cols = shape.out_w();
  const std::int64_t elements = tensor_elements(plan.output_layout, batch, channels, rows, cols);
  std::vector<float> words(static_cast<std::size_t>(elements / images_together(plan.output_layout)),
                           std::numeric_limits<float>::quiet_NaN());
  std::fill(maps.output.begin(), maps.output.end(), kUnwritten);
  kernel.run({.batch = batch,
              .input = words_of(plan, plan.input_layout, input, shape.in_channels, shape.in_h, shape.in_w),
              .output = words,
              .residual = words_of(plan, plan.output_layout, residual, channels, shape.conv_h(), shape.conv_w()),
              .input_map = maps.input,
              .output_map = maps.output});
  const std::vector<float> output =
      to_nchw(plan.output_layout, unpack_words(element_of(plan.precision), words), channels, rows, cols, batch);
  const ConvolutionReference reference(layer, batch, reference_input, residual);
  const Comparison result = compare(output, reference.outputs(),
                                    reference.tolerances({plan.precision, plan.promote_every, longest_reduction}),
                                    element_of(plan.precision));
  if (!result.within) {
    return fmt::format("{} is {}, expected {} +- {}", describe_output_index(shape, result.worst_index),
                       result.worst_value, result.worst_expected, result.worst_tolerance);
  }
  if (maps.output.empty()) return {};
  return map_fault(plan.output_map(), output_extent(shape, batch), maps.output, output, kUnwritten);
}

std::string run_once(HostKernel& kernel, const ConvLayer& layer, const BakedPlan& plan, int longest_reduction,
                     int batch, std::uint64_t seed) {
  const ConvShape& shape = layer.shape;
  const ElementType element = element_of(plan.precision);
  std::vector<float> input = rounded(element, random_tensor(shape.input_elements() * batch, seed));
  std::vector<float> residual;
  if (shape.epilogue.residual) residual = rounded(element, random_tensor(shape.conv_elements() * batch, seed + 1));
  const auto run = [&](const std::string& what, const std::vector<float>& reference_input, const Maps& maps) {
    const std::string fault =
        run_on(kernel, layer, plan, longest_reduction, batch, input, reference_input, residual, maps);
    return fault.empty() || what.empty() ? fault : fmt::format("{}: {}", what, fault);
  };
  if (!plan.uses_activity()) return run("", input, {});

  Maps maps;
  if (plan.marks) {
    maps.output.resize(static_cast<std::size_t>(map_bytes(plan.output_map(), output_extent(shape, batch))));
  }
  std::string fault = run("without a map of the input", input, maps);
  if (!fault.empty() || !plan.skips) return fault;
  const ActivityExtent extent = input_extent(shape, batch);
  // What a map calls dead is not looked at.
  maps.input.assign(static_cast<std::size_t>(map_bytes(*plan.skips, extent)), 0);
  fault = run("with a map that calls everything dead", std::vector<float>(input.size(), 0.0F), maps);
  for (const double dead : {0.5, 0.95}) {
    if (!fault.empty()) return fault;
    kill_channels(*plan.skips, extent, input, dead, seed + 2);
    maps.input = activity_of(*plan.skips, extent, input);
    fault = run(fmt::format("with {} of the channels dead", dead), input, maps);
  }
  return fault.empty() ? run("without maps", input, {}) : fault;
}

}  // namespace

std::string check_on_host(const ConvLayer& layer, const BakedPlan& plan, const std::vector<int>& batches,
                          std::uint64_t seed) {
  return check_against(layer, layer, plan, batches, seed);
}

std::string check_against(const ConvLayer& reference, const ConvLayer& layer, const BakedPlan& plan,
                          const std::vector<int>& batches, std::uint64_t seed) {
  if (batches.empty()) return layer.name + ": there is no batch to check";
  std::string what = "making the code";
  try {
    const SparsePattern pattern = analyse(layer);
    for (const std::string& fault : verify(plan, layer.shape, pattern)) {
      return fmt::format("{}: the plan is not legal: {}\n{}", layer.name, fault, print(plan));
    }
    const std::string symbol = kernel_symbol(layer.name, plan);
    const SpecialisedModule specialised = specialise_baked(layer, pattern, plan, symbol);
    HostKernel kernel(to_bitcode(specialised), symbol, form_of(plan, layer.shape));
    const int longest = longest_reduction(pattern, layer.shape.epilogue);
    for (const int batch : batches) {
      what = fmt::format("batch {}", batch);
      const std::string fault = run_once(kernel, reference, plan, longest, batch, seed);
      if (!fault.empty()) return fmt::format("{}, {}: {}\n{}", layer.name, what, fault, print(plan));
    }
  } catch (const Error& error) {
    return fmt::format("{}, {}: {}\n{}", layer.name, what, error.what(), print(plan));
  }
  return {};
}

namespace {

std::string check_request(const ConvLayer& layer, const PlanRequest& request, const std::vector<int>& batches,
                          std::uint64_t seed) {
  try {
    return check_on_host(layer, make_plan(layer, analyse(layer), request), batches, seed);
  } catch (const Error& error) {
    return fmt::format("{}: no plan for batch {} on {}: {}", layer.name, request.batch, request.archs.front(),
                       error.what());
  }
}

}  // namespace

std::string check_planned_on_host(const ConvLayer& layer, int planned_batch, const std::vector<int>& batches,
                                  const std::string& arch, std::uint64_t seed, Precision precision) {
  PlanRequest request;
  request.batch = planned_batch;
  request.archs = {arch};
  request.precision = precision;
  return check_request(layer, request, batches, seed);
}

std::string check_skipping_on_host(const ConvLayer& layer, int planned_batch, const std::vector<int>& batches,
                                   Precision precision, TensorLayout layout) {
  PlanRequest request;
  request.batch = planned_batch;
  request.precision = precision;
  request.input_layout = request.output_layout = layout;
  request.skip_dead_tiles = true;
  return check_request(layer, request, batches, 1);
}

}  // namespace burin_test
