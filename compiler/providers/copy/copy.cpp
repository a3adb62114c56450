// Operators that only move values: as boxes of up to six axes, with as few axes as they can be described by.
#include <algorithm>
#include <array>
#include <limits>

#include "compiler/providers/template_provider.h"
#include "ir/error.h"
#include "ir/limits.h"
#include "ir/saturate.h"

namespace burin {
namespace {

using Shape = std::vector<std::int64_t>;

// An axis of the box: copy.cu.
struct Axis {
  std::int64_t extent = 1, in_extent = 1, before = 0, in_stride = 0, out_stride = 0;
  bool whole() const { return before == 0 && in_extent == extent; }
};

struct Box {
  std::vector<Axis> axes;
  float value = 0;          // where there is no input
  std::int64_t origin = 0;  // of the input: where the element of all axes' beginnings lies
};

// Elements from one step along each axis to the next.
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

// A box of elements as one of their words.
Box in_words(Box box, const Task& task) {
  const std::int64_t words = place_words(task);
  box.origin *= words;
  for (Axis& axis : box.axes) {
    axis.in_stride *= words;
    axis.out_stride *= words;
  }
  box.axes.push_back({words, words, 0, 1, 1});
  return box;
}

// The axes of its elements in memory: those channels that lie side by side are the last one.
Shape stored_shape(const Shape& shape, const Task& task) {
  const std::int64_t together = channels_together(task.writes.layout);
  if (together == 1) return shape;
  return {ceil_div(shape[0], together), shape[1], shape[2], together};
}

Box box_of(const Pad& op, const Task& task) {
  const Shape from = stored_shape(task.inputs[0], task), to = stored_shape(task.output, task);
  const Shape in = strides_of(from), out = strides_of(to);
  const std::array<std::int64_t, 4> before = {0, op.pad.top, op.pad.left, 0};
  Box box{.axes = {}, .value = op.value};
  for (std::size_t i = 0; i < to.size(); ++i) box.axes.push_back({to[i], from[i], before[i], in[i], out[i]});
  return in_words(box, task);
}

Box box_of(const Transpose& op, const Task& task) {
  const Shape to = stored_shape(task.output, task);
  const Shape in = strides_of(stored_shape(task.inputs[0], task)), out = strides_of(to);
  Box box;
  for (std::size_t i = 0; i < to.size(); ++i) {
    const std::size_t from = i < op.order.size() ? static_cast<std::size_t>(op.order[i]) : i;
    box.axes.push_back({to[i], to[i], 0, in[from], out[i]});
  }
  return in_words(box, task);
}

Box box_of(const Pick& op, const Task& task) {
  const Shape to = stored_shape(task.output, task);
  const Shape in = strides_of(stored_shape(task.inputs[0], task)), out = strides_of(to);
  Box box;
  for (std::size_t i = 0; i < to.size(); ++i) {
    // Channels that lie side by side are all taken: the axis of the octets is none of the operator's.
    const bool whole = i >= op.axes.size() || (i == 0 && channels_together(task.writes.layout) > 1);
    const std::size_t from = i < op.axes.size() ? op.from(i) : i;
    const PickedAxis taken = whole ? PickedAxis{0, 1, to[i]} : op.axes[from];
    box.origin += taken.begin * in[from];
    // Of one element there is no step, and none is longer than the tensor.
    box.axes.push_back({to[i], to[i], 0, to[i] > 1 ? taken.step * in[from] : 0, out[i]});
  }
  return in_words(box, task);
}

// The same words in runs of the same length.
Box box_of(const KernelTensor& from, const KernelTensor& to) {
  BURIN_CHECK(from.runs == to.runs && from.run_words == to.run_words, "{} runs of {} words become {} of {}", from.runs,
              from.run_words, to.runs, to.run_words);
  const auto pitch = [](const KernelTensor& tensor) { return tensor.runs > 1 ? tensor.run_pitch : tensor.run_words; };
  return {{{from.runs, from.runs, 0, pitch(from), pitch(to)}, {from.run_words, from.run_words, 0, 1, 1}}, 0, 0};
}

Box box_of(const Task& task) {
  const Pad* pad = task.get<Pad>();
  const Transpose* transpose = task.get<Transpose>();
  const Pick* pick = task.get<Pick>();
  Box box = pad         ? box_of(*pad, task)
            : transpose ? box_of(*transpose, task)
            : pick      ? box_of(*pick, task)
                        : box_of(task.reads[0], task.writes);
  box.axes = merged(box.axes);
  return box;
}

class CopyProvider : public PlainProvider {
 public:
  CopyProvider() : PlainProvider("copy") {}

 protected:
  bool knows_formats() const override { return true; }
  bool knows_places() const override { return true; }
  bool can(const Task& task) const override {
    if (task.is_copy()) return task.reads[0].format() == task.writes.format();
    if (has_places(task.writes.layout)) return false;  // of whose places the words alone are moved
    if (const Transpose* transpose = task.get<Transpose>()) {
      return has_one_format(task) && (channels_together(task.writes.layout) == 1 || transpose->order.front() == 0);
    }
    if (const Pick* pick = task.get<Pick>()) {
      const bool whole = pick->from(0) == 0 && pick->axes.front().is_whole(task.inputs[0].front());
      return has_one_format(task) && (channels_together(task.writes.layout) == 1 || whole);
    }
    return has_one_format(task) && task.get<Pad>() != nullptr;
  }
  TemplatePlan plan(const Task& task, const TemplatePlan* chosen) const override {
    const auto [axes, value, origin] = box_of(task);
    constexpr std::size_t kAxes = kMaxActivationRank;
    BURIN_CHECK(axes.size() <= kAxes, "a box of {} axes", axes.size());
    TemplatePlan plan = start(task);
    const bool flat =
        origin == 0 &&
        (axes.empty() || (axes.size() == 1 && axes[0].whole() && axes[0].in_stride == 1 && axes[0].out_stride == 1));
    set_integers(plan, {{"flat", flat}, {"origin", origin}});
    // What halves cannot hold does not become infinite.
    const auto most =
        static_cast<float>(std::min<double>(largest_of(task.writes.element), std::numeric_limits<float>::max()));
    plan.reals["copy_value"] = std::clamp(value, -most, most);
    const std::size_t filled = kAxes - axes.size();
    for (std::size_t i = 0; i < kAxes; ++i) {
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
    set_pieces(plan, task, task.writes.words(), flat, chosen);
    plan.launch().tile_images = images_together(task.writes.layout);
    return plan;
  }
  LaunchWork work_of(const Task& task, const TemplatePlan& plan) const override {
    constexpr double kScatteredRate = 0.34;  // of l2_bytes_per_clock: words that are neighbours here are none there
    LaunchWork work = PlainProvider::work_of(task, plan);
    const std::vector<Axis> axes = box_of(task).axes;
    const bool scattered = !axes.empty() && (axes.back().in_stride != 1 || axes.back().out_stride != 1);
    if (scattered) {
      const ArchSpec& arch = arch_of(task);
      work.busy_us = clocks_us(work.activation_bytes / (kScatteredRate * arch.l2_bytes_per_clock), arch);
      work.activation_bytes = 0;
    }
    return work;
  }
};

}  // namespace

const Provider& copy_provider() { return the_only<CopyProvider>(); }

}  // namespace burin
