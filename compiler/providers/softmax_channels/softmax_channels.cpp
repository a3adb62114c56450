// Softmax over the channels of each pixel.
#include "compiler/providers/template_provider.h"

namespace burin {
namespace {

class SoftmaxChannelsProvider : public PlainProvider {
 public:
  SoftmaxChannelsProvider() : PlainProvider("softmax_channels") {}

 protected:
  bool can(const Task& task) const override { return task.get<Softmax>() != nullptr && values_of(task.output, 1) > 1; }
  TemplatePlan plan(const Task& task, const TemplatePlan*) const override {
    TemplatePlan plan = start(task);
    set_narrow(plan);
    set_integers(plan, {{"channels", task.output[0]}, {"plane", values_of(task.output, 1)}});
    set_items(plan, values_of(task.output, 1));
    return plan;
  }
  std::optional<LibraryTask> library_task(const Kernel& kernel, int) const override {
    const TemplatePlan plan = usable_plan(kernel);
    return SoftmaxImage{plan.integers.at("channels"), plan.integers.at("plane")};
  }
  LaunchWork work_of(const Task& task, const TemplatePlan& plan) const override {
    constexpr double kChannelUs = 0.16;  // three passes, each with a load that the next one waits for
    LaunchWork work = PlainProvider::work_of(task, plan);
    work.busy_us = kChannelUs * static_cast<double>(task.output[0]);
    return work;
  }
};

}  // namespace

const Provider& softmax_channels_provider() { return the_only<SoftmaxChannelsProvider>(); }

}  // namespace burin
