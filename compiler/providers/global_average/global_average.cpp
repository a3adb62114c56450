// Mean of each channel, by a warp or several; of channels that lie side by side, of as many at once.
#include <algorithm>

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
    const TensorFormat input = task.reads[0].format(), output = task.writes.format();
    return averages_image(task) && input.layout != TensorLayout::nchw4 && (output.is_plain() || output == input);
  }
  TemplatePlan plan(const Task& task, const TemplatePlan*) const override {
    TemplatePlan plan = start(task);
    const std::int64_t channels = task.inputs[0][0], together = channels_together(task.reads[0].layout);
    const std::int64_t elements = values_of(task.inputs[0], 1) * place_words(task) * together;
    const bool vectors = elements % kVectorWords == 0 && is_wide(plan.input());
    if (!vectors) plan.input().alignment = kWordBytes;
    plan.output().alignment = words_together(plan.output().layout) * kWordBytes;
    const int vector = vectors ? kVectorWords : 1, warps = warps_for(elements / vector);
    set_integers(plan, {{"channels", channels}, {"elements", elements}, {"vector", vector}, {"warps", warps}});
    constexpr int kWarpsOfBlock = 4;  // few, so that the channels of one image reach many multiprocessors
    const int block_warps = std::max(warps, kWarpsOfBlock);
    plan.launch().threads = block_warps * kWarpSize;
    plan.launch().tiles_per_image = ceil_div(ceil_div(channels, together), block_warps / warps);
    set_word_images(plan);
    const int planes = plan.launch().tile_images;
    plan.launch().shared_bytes = warps == 1 ? 0 : kSharedReserveBytes + planes * plan.launch().threads * kWordBytes;
    return plan;
  }

  std::optional<LibraryTask> library_task(const Kernel& kernel, int) const override {
    const TemplatePlan plan = usable_plan(kernel);
    const KernelTensor& input = plan.input();
    if (!input.is_image()) return std::nullopt;
    const Pool pool{.kind = PoolKind::average, .kernel_h = input.rows, .kernel_w = input.cols};
    return PooledImage{input.channels, input.rows, input.cols, pool};
  }

 private:
  // So many that each loads a few times, in rounds of as many loads as a thread has in flight.
  static int warps_for(std::int64_t pieces) {
    constexpr int kMostWarps = 32;  // of global_average.cu, as the next one
    constexpr std::int64_t kRoundPieces = 8 * kWarpSize;
    int warps = 1;
    while (warps < kMostWarps && warps * kRoundPieces < pieces) warps *= 2;
    return warps;
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
