#include "test/codegen/host_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "compiler/host/executor.h"
#include "compiler/launch_geometry.h"
#include "compiler/plan/planner.h"
#include "compiler/reference.h"
#include "compiler/specialise/specialise.h"
#include "ir/element_type.h"
#include "ir/error.h"

using namespace burin;

namespace burin_test {
namespace {

// A tensor as the plan's kernel has it in memory, with NaN in all that fills up: a sum that takes one in is NaN.
std::vector<float> words_of(const KernelPlan& plan, TensorLayout layout, const std::vector<float>& nchw, int channels,
                            int rows, int cols) {
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  return pack_words(element_of(plan.precision), from_nchw(layout, nchw, channels, rows, cols, kNaN));
}

std::string run_once(HostKernel& kernel, const ConvLayer& layer, const KernelPlan& plan, int longest_reduction,
                     int batch, std::uint64_t seed) {
  const ConvShape& shape = layer.shape;
  const ElementType element = element_of(plan.precision);
  const std::vector<float> input = rounded(element, random_tensor(shape.input_elements() * batch, seed));
  std::vector<float> residual;
  if (shape.epilogue.residual) residual = rounded(element, random_tensor(shape.output_elements() * batch, seed + 1));
  const int channels = shape.out_channels, rows = shape.out_h(), cols = shape.out_w();
  std::vector<float> words(static_cast<std::size_t>(tensor_words(plan.output_layout, batch, channels, rows, cols)),
                           std::numeric_limits<float>::quiet_NaN());
  kernel.run({.batch = batch,
              .input = words_of(plan, plan.input_layout, input, shape.in_channels, shape.in_h, shape.in_w),
              .output = words,
              .residual = words_of(plan, plan.output_layout, residual, channels, rows, cols)});
  const std::vector<float> output =
      to_nchw(plan.output_layout, unpack_words(element, words), channels, rows, cols, batch);
  const Comparison result = compare(output, reference_convolution(layer, batch, input, residual),
                                    reference_magnitude(layer, batch, input, residual),
                                    {plan.precision, plan.promote_every, longest_reduction});
  if (result.within) return {};
  return fmt::format("{} is {}, expected {} +- {}", describe_output_index(shape, result.worst_index),
                     result.worst_value, result.worst_expected, result.worst_tolerance);
}

}  // namespace

std::string check_on_host(const ConvLayer& layer, const KernelPlan& plan, const std::vector<int>& batches,
                          std::uint64_t seed) {
  return check_against(layer, layer, plan, batches, seed);
}

std::string check_against(const ConvLayer& reference, const ConvLayer& layer, const KernelPlan& plan,
                          const std::vector<int>& batches, std::uint64_t seed) {
  std::string what = "making the code";
  try {
    const SparsePattern pattern = analyse(layer);
    for (const std::string& fault : verify(plan, layer.shape, pattern)) {
      return fmt::format("{}: the plan is not legal: {}\n{}", layer.name, fault, print(plan));
    }
    const std::string symbol = kernel_symbol(layer.name, plan);
    const SpecialisedModule specialised = specialise(layer, pattern, plan, symbol);
    HostKernel kernel(to_bitcode(specialised), symbol, launch_geometry(plan, layer.shape), layer.shape);
    const std::vector<int>& rows = pattern.statistics.per_row;
    const int longest = rows.empty() ? 0 : *std::max_element(rows.begin(), rows.end());
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

std::string check_planned_on_host(const ConvLayer& layer, int planned_batch, const std::vector<int>& batches,
                                  const std::string& arch, std::uint64_t seed, Precision precision) {
  try {
    PlanRequest request;
    request.batch = planned_batch;
    request.archs = {arch};
    request.precision = precision;
    return check_on_host(layer, make_plan(layer, analyse(layer), request), batches, seed);
  } catch (const Error& error) {
    return fmt::format("{}: no plan for batch {} on {}: {}", layer.name, planned_batch, arch, error.what());
  }
}

}  // namespace burin_test
