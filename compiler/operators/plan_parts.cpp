#include "compiler/operators/plan_parts.h"

#include <algorithm>
#include <utility>

#include "ir/limits.h"
#include "ir/saturate.h"

namespace burin {
namespace {

void set_function(OperatorPlan& plan, int function, float alpha, float beta) {
  plan.integers["function"] = function;
  plan.reals["alpha"] = alpha;
  plan.reals["beta"] = beta;
}

}  // namespace

std::int64_t round_up(std::int64_t value, std::int64_t multiple) { return ceil_div(value, multiple) * multiple; }

OperatorTensor tensor_at(const BufferPlace& place, std::int64_t words) {
  OperatorTensor tensor;
  tensor.image_words = place.image_words == 0 ? words : place.image_words;
  tensor.offset = place.offset;
  tensor.run_words = words;
  const bool quads = tensor.image_words % kVectorWords == 0 && tensor.offset % kVectorWords == 0;
  tensor.aligned = quads ? kVectorWords : 1;
  return tensor;
}

PlannedOperator start_convolution(std::string_view template_name, const ConvShape& shape,
                                  const OperatorRequest& request) {
  const auto place = [&](std::size_t input) { return request.inputs.empty() ? BufferPlace{} : request.inputs[input]; };
  PlannedOperator result;
  OperatorPlan& plan = result.plan;
  plan.template_name = template_name;
  plan.arch = request.arch;
  plan.input = tensor_at(place(0), shape.input_elements());
  plan.output = tensor_at(request.output, shape.output_elements());
  plan.output.aligned = 1;
  if (shape.epilogue.residual) {
    result.second = 1;
    plan.second = tensor_at(place(1), shape.conv_elements());
    plan.second.aligned = 1;
  }
  const std::pair<const char*, int> constants[] = {
      {"in_rows", shape.in_h},
      {"in_cols", shape.in_w},
      {"out_cols", shape.conv_w()},
      {"kernel_rows", shape.kernel_h},
      {"kernel_cols", shape.kernel_w},
      {"stride_rows", shape.stride_h},
      {"stride_cols", shape.stride_w},
      {"dilation_rows", shape.dilation_h},
      {"dilation_cols", shape.dilation_w},
      {"pad_top", shape.pad.top},
      {"pad_left", shape.pad.left},
      {"residual", shape.epilogue.residual},
  };
  for (const auto& [name, value] : constants) plan.integers[name] = value;
  set_function(plan, shape.epilogue.activation, shape.epilogue.leaky_slope);
  return result;
}

void set_no_function(OperatorPlan& plan) { set_function(plan, 0, 0, 0); }

void set_function(OperatorPlan& plan, const Elementwise& op) {
  set_function(plan, static_cast<int>(op.function) + 1, op.alpha, op.beta);
}

void set_function(OperatorPlan& plan, Activation activation, float leaky_slope) {
  constexpr float kSix = 6;
  switch (activation) {
    case Activation::none:
      return set_no_function(plan);
    case Activation::relu:
      return set_function(plan, Elementwise{ElementFunction::relu, 0, 0});
    case Activation::relu6:
      return set_function(plan, Elementwise{ElementFunction::clip, 0, kSix});
    case Activation::leaky_relu:
      return set_function(plan, Elementwise{ElementFunction::leaky_relu, leaky_slope, 0});
    case Activation::sigmoid:
      return set_function(plan, Elementwise{ElementFunction::sigmoid, 0, 0});
    case Activation::silu:
      return set_function(plan, Elementwise{ElementFunction::silu, 0, 0});
  }
}

void set_pieces(OperatorPlan& plan, std::int64_t elements, bool vectors, const Target& target) {
  const int vector = vectors ? kVectorWords : 1;
  if (!vectors) plan.input.aligned = plan.second.aligned = plan.output.aligned = 1;
  const std::int64_t pieces = elements / vector;
  // More pieces for a thread only where all multiprocessors are full without.
  const std::int64_t at_once = target.arch.multiprocessors * target.arch.max_threads_per_multiprocessor / kBlockThreads;
  const std::int64_t waves = ceil_div(pieces, kBlockThreads) * target.batch / at_once;
  int steps = waves >= 4 ? 4 : waves >= 2 ? 2 : 1;
  while (steps > 1 && pieces < std::int64_t{steps} * kBlockThreads) steps /= 2;
  plan.integers["elements"] = static_cast<int>(elements);
  plan.integers["vector"] = vector;
  plan.integers["steps"] = steps;
  set_items(plan, ceil_div(pieces, steps));
}

void set_items(OperatorPlan& plan, std::int64_t items) {
  plan.threads = static_cast<int>(std::min<std::int64_t>(kBlockThreads, round_up(items, kWarpSize)));
  plan.group_blocks = static_cast<int>(ceil_div(items, plan.threads));
}

std::uint32_t half_word(ElementType type, float first, float second) {
  return to_half(type, first) | static_cast<std::uint32_t>(to_half(type, second)) << 16;
}

}  // namespace burin
