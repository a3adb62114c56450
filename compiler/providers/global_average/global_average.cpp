// Mean of each channel, a warp each.
#include "compiler/providers/template_provider.h"
#include "ir/saturate.h"
// clang-format off
#include "compiler/providers/template_constants.h"
// clang-format on

namespace burin {
namespace {

const std::vector<TemplateConstant> kGlobalAverageConstants = {
#include "compiler/providers/global_average/global_average.def"
};

class GlobalAverageProvider : public PlainProvider {
 public:
  GlobalAverageProvider()
      : PlainProvider("global_average", "mean of each channel, a warp each", kGlobalAverageConstants) {}

 protected:
  bool can(const Task& task) const override {
    if (task.get<GlobalAveragePool>() != nullptr) return true;
    const Pool* pool = task.get<Pool>();
    return pool != nullptr && pool->kind == PoolKind::average && pool->kernel_h == task.inputs[0][1] &&
           pool->kernel_w == task.inputs[0][2] && pool->dilation_h == 1 && pool->dilation_w == 1 &&
           pool->pad == Padding{} && values_of(task.output, 1) == 1;
  }
  TemplatePlan plan(const Task& task) const override {
    TemplatePlan plan = start(task);
    const std::int64_t channels = task.inputs[0][0], plane = values_of(task.inputs[0], 1);
    const bool vectors = plane % kVectorWords == 0 && is_wide(plan.input());
    if (!vectors) plan.input().alignment = kWordBytes;
    plan.output().alignment = kWordBytes;
    set_integers(plan, {{"channels", channels}, {"plane", plane}, {"vector", vectors ? kVectorWords : 1}});
    constexpr int kWarpsOfBlock = 4;  // few, so that the channels of one image reach many multiprocessors
    plan.launch().threads = kWarpsOfBlock * kWarpSize;
    plan.launch().tiles_per_image = ceil_div(channels, kWarpsOfBlock);
    return plan;
  }
  LaunchWork work_of(const Task& task, const TemplatePlan&) const override {
    constexpr double kPlaneClocks = 39;  // of a multiprocessor, whatever the plane's size
    const double planes = static_cast<double>(task.inputs[0][0]) * task.batch;
    return {.busy_us = clocks_us(planes / arch_of(task).multiprocessors * kPlaneClocks, arch_of(task)),
            .activation_bytes = activation_bytes(task)};
  }
  TemplatePlan plan_as(const Task& task, const TemplatePlan&) const override { return plan(task); }
};

}  // namespace

const Provider& global_average_provider() {
  static const GlobalAverageProvider provider;
  return provider;
}

}  // namespace burin
