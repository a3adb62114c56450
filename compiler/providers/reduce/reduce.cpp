// One number of all values of an image along some axes.
#include "compiler/providers/lane_groups.h"

namespace burin {
namespace {

class ReduceProvider : public PlainProvider {
 public:
  ReduceProvider() : PlainProvider("reduce") {}

 protected:
  bool can(const Task& task) const override {
    const Reduce* op = task.get<Reduce>();
    return op != nullptr && lane_groups(task.inputs[0], op->axes).fit();
  }
  TemplatePlan plan(const Task& task, const TemplatePlan*) const override {
    const Reduce& op = *task.get<Reduce>();
    TemplatePlan plan = start(task);
    plan.integers["statistic"] = static_cast<int>(op.statistic);
    set_function(plan, op.then);
    constexpr int kExchanges = 2;  // of log_sum_exp: the largest value, then the sum
    set_lane_groups(plan, task, lane_groups(task.inputs[0], op.axes), kExchanges);
    return plan;
  }
};

}  // namespace

const Provider& reduce_provider() { return the_only<ReduceProvider>(); }

}  // namespace burin
