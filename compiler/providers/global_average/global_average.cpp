// Mean of each channel, a warp each; of channels that lie side by side, a warp for as many.
#include "compiler/providers/template_provider.h"
#include "ir/saturate.h"

namespace burin {
namespace {

class GlobalAverageProvider : public PlainProvider {
 public:
  GlobalAverageProvider() : PlainProvider("global_average") {}

 protected:
  bool knows_formats() const override { return true; }
  bool can(const Task& task) const override {
    return averages_image(task) && task.reads[0].layout != TensorLayout::nchw4 && task.writes.format().is_plain();
  }
  TemplatePlan plan(const Task& task, const TemplatePlan*) const override {
    TemplatePlan plan = start(task);
    const std::int64_t channels = task.inputs[0][0], together = channels_together(task.reads[0].layout);
    const std::int64_t elements = values_of(task.inputs[0], 1) * place_words(task) * together;
    const bool vectors = elements % kVectorWords == 0 && is_wide(plan.input());
    if (!vectors) plan.input().alignment = kWordBytes;
    plan.output().alignment = kWordBytes;
    set_integers(plan, {{"channels", channels}, {"elements", elements}, {"vector", vectors ? kVectorWords : 1}});
    constexpr int kWarpsOfBlock = 4;  // few, so that the channels of one image reach many multiprocessors
    plan.launch().threads = kWarpsOfBlock * kWarpSize;
    plan.launch().tiles_per_image = ceil_div(ceil_div(channels, together), kWarpsOfBlock);
    set_word_images(plan);
    return plan;
  }
  LaunchWork work_of(const Task& task, const TemplatePlan&) const override {
    constexpr double kPlaneClocks = 39;  // of a multiprocessor, whatever the plane's size
    const double planes = static_cast<double>(task.inputs[0][0]) * task.batch;
    return {.busy_us = clocks_us(planes / arch_of(task).multiprocessors * kPlaneClocks, arch_of(task)),
            .activation_bytes = activation_bytes(task)};
  }
};

}  // namespace

const Provider& global_average_provider() { return the_only<GlobalAverageProvider>(); }

}  // namespace burin
