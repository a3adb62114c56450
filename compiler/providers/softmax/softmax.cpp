// Softmax of a whole image that is flat.
#include <algorithm>

#include "compiler/providers/template_provider.h"
#include "ir/kernel.h"

namespace burin {
namespace {

class SoftmaxProvider : public PlainProvider {
 public:
  SoftmaxProvider() : PlainProvider("softmax") {}

 protected:
  bool can(const Task& task) const override { return task.get<Softmax>() != nullptr && values_of(task.output, 1) == 1; }
  TemplatePlan plan(const Task& task, const TemplatePlan*) const override {
    TemplatePlan plan = start(task);
    set_narrow(plan);
    set_integers(plan, {{"elements", task.output[0]}});
    LaunchGeometry& launch = plan.launch();
    launch.threads = static_cast<int>(std::min<std::int64_t>(kMaxThreadsPerBlock, round_up(task.output[0], kWarpSize)));
    constexpr int kExchangedBytes = 2 * 32 * 4;  // a value of each warp, twice
    launch.shared_bytes = launch.threads == kWarpSize ? 0 : kSharedReserveBytes + kExchangedBytes;
    return plan;
  }
  std::optional<LibraryTask> library_task(const Kernel& kernel, int) const override {
    const TemplatePlan plan = usable_plan(kernel);
    return SoftmaxImage{plan.integers.at("elements"), 1};
  }
  LaunchWork work_of(const Task& task, const TemplatePlan& plan) const override {
    LaunchWork work = PlainProvider::work_of(task, plan);
    work.waits = 2;  // for its values, then for the other warps: their maximum, their sum
    return work;
  }
};

}  // namespace

const Provider& softmax_provider() { return the_only<SoftmaxProvider>(); }

}  // namespace burin
