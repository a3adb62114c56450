// Operators that only move values: as boxes of up to six axes, with as few axes as they can be described by.
#include <fmt/format.h>

#include <array>
#include <vector>

#include "compiler/operators/plan_parts.h"
#include "ir/error.h"
#include "ir/limits.h"

namespace burin {
namespace {

using Shape = std::vector<std::int64_t>;

// An axis of the box: templates/operators/copy.cu.
struct Axis {
  std::int64_t extent = 1, in_extent = 1, before = 0, in_stride = 0, out_stride = 0;
  bool whole() const { return before == 0 && in_extent == extent; }
};

// Words from one step along each axis to the next.
Shape strides_of(const Shape& shape) {
  Shape strides(shape.size(), 1);
  for (std::size_t axis = shape.size() - 1; axis > 0; --axis) strides[axis - 1] = strides[axis] * shape[axis];
  return strides;
}

// Neighbouring axes that are one on both sides become one; axes of extent 1 go.
std::vector<Axis> merged(const std::vector<Axis>& axes) {
  std::vector<Axis> result;
  for (const Axis& axis : axes) {
    if (axis.extent == 1 && axis.whole()) continue;
    if (!result.empty()) {
      Axis& last = result.back();
      const bool one = axis.whole() && last.whole() && last.in_stride == axis.extent * axis.in_stride &&
                       last.out_stride == axis.extent * axis.out_stride;
      if (one) {
        last = {last.extent * axis.extent, last.extent * axis.extent, 0, axis.in_stride, axis.out_stride};
        continue;
      }
    }
    result.push_back(axis);
  }
  return result;
}

std::int64_t volume(const std::vector<Axis>& axes) {
  std::int64_t words = 1;
  for (const Axis& axis : axes) words *= axis.extent;
  return words;
}

PlannedOperator plan_box(const std::vector<Axis>& all, float value, const OperatorTensor& input,
                         const OperatorTensor& output, const Target& target) {
  constexpr std::size_t kAxes = kMaxActivationRank;
  const std::vector<Axis> axes = merged(all);
  BURIN_CHECK(axes.size() <= kAxes, "a box of {} axes", axes.size());
  PlannedOperator result;
  OperatorPlan& plan = result.plan;
  plan.template_name = "copy";
  plan.input = input;
  plan.output = output;
  const bool flat =
      axes.empty() || (axes.size() == 1 && axes[0].whole() && axes[0].in_stride == 1 && axes[0].out_stride == 1);
  plan.integers["flat"] = flat;
  plan.reals["copy_value"] = value;
  for (std::size_t i = 0; i < kAxes; ++i) {
    const std::size_t filled = kAxes - axes.size();
    const Axis axis = i < filled ? Axis{} : axes[i - filled];
    const auto set = [&](const char* name, std::int64_t number) {
      plan.integers[fmt::format("{}{}", name, i)] = static_cast<int>(number);
    };
    set("extent", axis.extent);
    set("in_extent", axis.in_extent);
    set("before", axis.before);
    set("in_stride", axis.in_stride);
    set("out_stride", axis.out_stride);
  }
  const std::int64_t words = volume(all);
  const bool vectors = flat && words % kVectorWords == 0 && input.aligned > 1 && output.aligned > 1;
  set_pieces(plan, words, vectors, target);
  return result;
}

}  // namespace

PlannedOperator plan_copy(std::int64_t words, const BufferPlace& input, const BufferPlace& output,
                          const Target& target) {
  return plan_box({{words, words, 0, 1, 1}}, 0, tensor_at(input, words), tensor_at(output, words), target);
}

PlannedOperator plan_pad(const Pad& op, const Shape& from, const Shape& to, const BufferPlace& input,
                         const BufferPlace& output, const Target& target) {
  const Shape in = strides_of(from), out = strides_of(to);
  const std::array<std::int64_t, 3> before = {0, op.pad.top, op.pad.left};
  std::vector<Axis> axes;
  for (std::size_t i = 0; i < to.size(); ++i) axes.push_back({to[i], from[i], before[i], in[i], out[i]});
  const std::int64_t words = in[0] * from[0];
  return plan_box(axes, op.value, tensor_at(input, words), tensor_at(output, out[0] * to[0]), target);
}

PlannedOperator plan_transpose(const Transpose& op, const Shape& from, const Shape& to, const BufferPlace& input,
                               const BufferPlace& output, const Target& target) {
  const Shape in = strides_of(from), out = strides_of(to);
  std::vector<Axis> axes;
  for (std::size_t i = 0; i < to.size(); ++i) {
    axes.push_back({to[i], to[i], 0, in[static_cast<std::size_t>(op.order[i])], out[i]});
  }
  const std::int64_t words = out[0] * to[0];
  return plan_box(axes, 0, tensor_at(input, words), tensor_at(output, words), target);
}

PlannedOperator plan_move(const OperatorTensor& from, const OperatorTensor& to, const OperatorRequest& request) {
  BURIN_CHECK(from.runs == to.runs && from.run_words == to.run_words, "{} runs of {} words become {} of {}", from.runs,
              from.run_words, to.runs, to.run_words);
  const auto placed = [](OperatorTensor tensor) {
    const bool by_fours = tensor.image_words % kVectorWords == 0 && tensor.offset % kVectorWords == 0 &&
                          tensor.run_pitch % kVectorWords == 0;
    tensor.aligned = by_fours ? kVectorWords : 1;
    return tensor;
  };
  const auto pitch = [](const OperatorTensor& tensor) { return tensor.runs > 1 ? tensor.run_pitch : tensor.run_words; };
  const std::vector<Axis> axes = {{from.runs, from.runs, 0, pitch(from), pitch(to)},
                                  {from.run_words, from.run_words, 0, 1, 1}};
  return plan_box(axes, 0, placed(from), placed(to), {arch_by_name(request.arch), request.batch});
}

std::vector<PlannedOperator> plan_concat(const std::vector<Shape>& from, const std::vector<BufferPlace>& inputs,
                                         const Shape& to, int axis, const BufferPlace& output, const Target& target) {
  const Shape out = strides_of(to);
  const auto at = static_cast<std::size_t>(axis);
  std::vector<PlannedOperator> result;
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < from.size(); ++i) {
    const Shape in = strides_of(from[i]);
    std::vector<Axis> axes;
    for (std::size_t a = 0; a < to.size(); ++a) axes.push_back({from[i][a], from[i][a], 0, in[a], out[a]});
    const std::int64_t words = in[0] * from[i][0], run = from[i][at] * out[at];
    OperatorTensor part = tensor_at(output, out[0] * to[0]);
    part.offset += begin * out[at];
    part.run_words = run;
    part.runs = words / run;
    part.run_pitch = part.runs == 1 ? 0 : to[at] * out[at];
    if (part.offset % kVectorWords != 0 || part.run_pitch % kVectorWords != 0) part.aligned = 1;
    result.push_back(plan_box(axes, 0, tensor_at(inputs[i], words), part, target));
    result.back().input = static_cast<int>(i);
    begin += from[i][at];
  }
  return result;
}

}  // namespace burin
