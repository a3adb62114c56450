// A sum, a product or another function of two operands, of which the second may have one value for many of the first.
#include <algorithm>

#include "compiler/providers/template_provider.h"
#include "compiler/providers/walked_axes.h"
#include "ir/saturate.h"

namespace burin {
namespace {

using Shape = std::vector<std::int64_t>;

constexpr std::size_t kOperandAxes = 4;  // of combine.cu

// The axes of a tensor's words in memory: those channels that lie side by side are an axis, and the words of a place.
Shape stored_axes(const Shape& shape, const Task& task) {
  const std::int64_t together = channels_together(task.writes.layout);
  if (together == 1 && place_words(task) == 1) return shape;
  return {ceil_div(shape[0], together), shape[1], shape[2], together, place_words(task)};
}

// What the words of the first operand meet in the second.
std::vector<WalkedAxis> axes_of(const Task& task) {
  const Combine& op = *task.get<Combine>();
  const Shape whole = task.output, second = op.constant ? op.constant->shape : task.inputs[1];
  const Shape extents = stored_axes(whole, task);
  std::vector<std::int64_t> steps = steps_in(stored_axes(second, task));
  if (extents.size() > whole.size() && second[0] == 1 && whole[0] > 1) steps[0] = steps[whole.size()] = 0;
  std::vector<WalkedAxis> axes;
  for (std::size_t i = 0; i < extents.size(); ++i) axes.push_back({extents[i], {steps[i]}});
  return merged(axes);
}

class CombineProvider : public PlainProvider {
 public:
  CombineProvider() : PlainProvider("combine") {}

 protected:
  bool knows_formats() const override { return true; }
  bool can(const Task& task) const override {
    const Combine* op = task.get<Combine>();
    if (op == nullptr || !has_one_format(task) || axes_of(task).size() > kOperandAxes) return false;
    return !op->constant || task.writes.format().is_plain();
  }
  std::vector<std::uint32_t> pack(const Task& task, const TemplatePlan&) const override {
    std::vector<std::uint32_t> words;
    if (const auto& constant = task.get<Combine>()->constant) append_words(words, constant->values);
    return words;
  }
  TemplatePlan plan(const Task& task, const TemplatePlan* chosen) const override {
    const Combine& op = *task.get<Combine>();
    TemplatePlan plan = start(task);
    set_function(plan, op.then);
    set_integers(plan, {{"combination", static_cast<int>(op.combination)},
                        {"swapped", op.swapped},
                        {"constant", op.constant.has_value()}});
    plan.reals["otherwise"] = op.otherwise;
    if (op.user != nullptr) plan.calls["combine"] = op.user->symbol();
    const std::vector<WalkedAxis> axes = axes_of(task);
    set_axes(plan, "other", kOperandAxes, axes, {"step"});
    // Of words that lie side by side all are one value of the second operand, or they lie side by side there as well.
    const bool spread = axes.empty() || axes.back().steps[0] == 0;
    const auto in_fours = [](const WalkedAxis& axis) { return axis.steps[0] % kVectorWords == 0; };
    const bool aligned = std::ranges::all_of(axes.begin(), axes.empty() ? axes.end() : axes.end() - 1, in_fours);
    const bool wide = aligned && (op.constant || is_wide(plan.residual()));
    const bool vectors = !axes.empty() && axes.back().extent % kVectorWords == 0 && (spread || wide);
    if (op.constant) {
      plan.weights().run_words = std::ssize(op.constant->values);
    } else if (spread) {
      plan.residual().alignment = words_together(task.writes.layout) * kWordBytes;
    }
    set_pieces(plan, task, task.writes.words(), vectors, chosen);
    set_word_images(plan);
    return plan;
  }
};

}  // namespace

const Provider& combine_provider() { return the_only<CombineProvider>(); }

}  // namespace burin
