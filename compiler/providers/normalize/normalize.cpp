// Values of an image by what all those are that lie along some axes, then a scale and a shift.
#include "compiler/providers/lane_groups.h"
#include "ir/saturate.h"

namespace burin {
namespace {

const ConstantOperand* numbers_of(const Normalize& op) {
  return op.scale ? &*op.scale : op.shift ? &*op.shift : nullptr;
}

LaneGroups groups_of(const Task& task) {
  const Normalize& op = *task.get<Normalize>();
  const ConstantOperand* numbers = numbers_of(op);
  return lane_groups(task.inputs[0], op.axes, numbers != nullptr ? numbers->shape : std::vector<std::int64_t>());
}

class NormalizeProvider : public PlainProvider {
 public:
  NormalizeProvider() : PlainProvider("normalize") {}

 protected:
  bool can(const Task& task) const override { return task.get<Normalize>() != nullptr && groups_of(task).fit(); }
  std::vector<std::uint32_t> pack(const Task& task, const TemplatePlan&) const override {
    const Normalize& op = *task.get<Normalize>();
    std::vector<std::uint32_t> words;
    if (op.scale) append_words(words, op.scale->values);
    if (op.shift) append_words(words, op.shift->values);
    return words;
  }
  TemplatePlan plan(const Task& task, const TemplatePlan*) const override {
    const Normalize& op = *task.get<Normalize>();
    TemplatePlan plan = start(task);
    const LaneGroups groups = groups_of(task);
    const ConstantOperand* numbers = numbers_of(op);
    const std::int64_t each = numbers != nullptr ? std::ssize(numbers->values) : 0;
    plan.weights().run_words = each * ((op.scale ? 1 : 0) + (op.shift ? 1 : 0));
    set_integers(plan, {{"normalization", static_cast<int>(op.normalization)},
                        {"scales", op.scale.has_value()},
                        {"shifts", op.shift.has_value()},
                        {"scale_words", op.scale ? each : 0}});
    plan.reals["epsilon"] = op.epsilon;
    set_function(plan, op.then);
    constexpr int kExchanges = 2;  // the mean or the largest value, then a sum
    set_lane_groups(plan, task, groups, kExchanges, {"step", "number"});
    return plan;
  }
  LaunchWork work_of(const Task& task, const TemplatePlan& plan) const override {
    LaunchWork work = PlainProvider::work_of(task, plan);
    work.waits = 2;  // for its values, then for the other warps
    // What a thread cannot hold it reads a few at a time, in each of three passes.
    constexpr std::int64_t kHeldValues = 8, kAtOnce = 4, kPasses = 3;  // of normalize.cu
    const std::int64_t mine = ceil_div(groups_of(task).value_count, plan.integers.at("lanes"));
    if (mine > kHeldValues) work.waits = saturate_to_int(kPasses * ceil_div(mine, kAtOnce));
    return work;
  }
};

}  // namespace

const Provider& normalize_provider() { return the_only<NormalizeProvider>(); }

}  // namespace burin
