// Sum or product of two tensors, of which the second may have one value for each channel.
#include "compiler/providers/template_provider.h"

namespace burin {
namespace {

class CombineProvider : public PlainProvider {
 public:
  CombineProvider() : PlainProvider("combine", "sum or product of two tensors") {}

 protected:
  bool can(const Task& task) const override { return task.get<Combine>() != nullptr; }
  TemplatePlan plan(const Task& task, const TemplatePlan* chosen) const override {
    TemplatePlan plan = start(task);
    set_no_function(plan);
    set_integers(plan, {{"multiply", task.get<Combine>()->combination == Combination::multiply},
                        {"per_channel", per_channel(task)},
                        {"plane", per_channel(task) ? values_of(task.output, 1) : 1}});
    const bool vectors = by_fours(task, plan);
    if (is_spread(task)) plan.residual().alignment = kWordBytes;
    set_pieces(plan, task, values_of(task.output), vectors, chosen);
    return plan;
  }

 private:
  static bool per_channel(const Task& task) { return values_of(task.inputs[1]) != values_of(task.output); }
  // The values of a channel that stand for a whole plane of the other tensor.
  static bool is_spread(const Task& task) { return per_channel(task) && values_of(task.output, 1) > 1; }

  static bool by_fours(const Task& task, const TemplatePlan& plan) {
    // Where a channel has one value, four of them are one load as well.
    const bool other = is_spread(task) ? values_of(task.output, 1) % kVectorWords == 0 : is_wide(plan.residual());
    return values_of(task.output) % kVectorWords == 0 && is_wide(plan.input()) && is_wide(plan.output()) && other;
  }
};

}  // namespace

const Provider& combine_provider() { return the_only<CombineProvider>(); }

}  // namespace burin
