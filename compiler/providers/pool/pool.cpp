// Largest or mean value of a window.
#include "compiler/providers/template_provider.h"
#include "ir/saturate.h"

namespace burin {
namespace {

// Several where windows overlap and the GPU is full all the same.
int choose_rows(const Pool& pool, const Task& task) {
  constexpr int kMaxWindow = 25;  // positions of a window without a loop: pool.cu
  if (pool.stride_h >= pool.kernel_h || pool.dilation_h > 1 || pool.kernel_h * pool.kernel_w > kMaxWindow) return 1;
  const ArchSpec& arch = arch_of(task);
  const std::int64_t full = std::int64_t{arch.multiprocessors} * arch.max_threads_per_multiprocessor;
  // A place of eight images is four times the work of a word.
  const std::int64_t rows = values_of(task.output) * task.batch / (full * (place_words(task) == 1 ? 1 : 2));
  return rows >= 8 && task.output[1] >= 4 ? 4 : rows >= 2 && task.output[1] >= 2 ? 2 : 1;
}

class PoolProvider : public PlainProvider {
 public:
  PoolProvider() : PlainProvider("pool") {}

 protected:
  bool knows_formats() const override { return true; }
  bool knows_places() const override { return true; }
  bool can(const Task& task) const override {
    return task.get<Pool>() != nullptr && !averages_image(task) && has_one_format(task);
  }
  TemplatePlan plan(const Task& task, const TemplatePlan* chosen) const override {
    const Pool& op = *task.get<Pool>();
    const int thread_rows = chosen ? chosen->integers.at("thread_rows") : choose_rows(op, task);
    TemplatePlan plan = start(task);
    set_narrow(plan);
    set_integers(plan, {{"channels", place_count(task.reads[0].layout, task.inputs[0][0])},
                        {"in_rows", task.inputs[0][1]},
                        {"in_cols", task.inputs[0][2]},
                        {"out_rows", task.output[1]},
                        {"out_cols", task.output[2]},
                        {"kernel_rows", op.kernel_h},
                        {"kernel_cols", op.kernel_w},
                        {"stride_rows", op.stride_h},
                        {"stride_cols", op.stride_w},
                        {"dilation_rows", op.dilation_h},
                        {"dilation_cols", op.dilation_w},
                        {"pad_top", op.pad.top},
                        {"pad_bottom", op.pad.bottom},
                        {"pad_left", op.pad.left},
                        {"pad_right", op.pad.right},
                        {"thread_rows", thread_rows},
                        {"average", op.kind == PoolKind::average},
                        {"count_padding", op.count_padding}});
    set_items(plan, stored_channels(task) * ceil_div(task.output[1], thread_rows) * task.output[2]);
    set_word_images(plan);
    return plan;
  }

  std::optional<LibraryTask> library_task(const Kernel& kernel, int) const override {
    const TemplatePlan plan = usable_plan(kernel);
    const KernelTensor& input = plan.input();
    if (!input.is_image()) return std::nullopt;
    const auto of = [&](const char* name) { return plan.integers.at(name); };
    Pool pool{.kind = of("average") != 0 ? PoolKind::average : PoolKind::max,
              .kernel_h = of("kernel_rows"),
              .kernel_w = of("kernel_cols"),
              .stride_h = of("stride_rows"),
              .stride_w = of("stride_cols"),
              .dilation_h = of("dilation_rows"),
              .dilation_w = of("dilation_cols"),
              .pad = {of("pad_top"), of("pad_bottom"), of("pad_left"), of("pad_right")},
              .count_padding = of("count_padding") != 0};
    pool.round_up = pooled_rows(pool, input.rows) != of("out_rows") || pooled_cols(pool, input.cols) != of("out_cols");
    if (!verify(pool, input.rows, input.cols).empty()) return std::nullopt;
    return PooledImage{input.channels, input.rows, input.cols, pool};
  }

  LaunchWork work_of(const Task& task, const TemplatePlan& plan) const override {
    constexpr double kLoadsPerClock = 14,
                     kMeanLoads = 1.5;  // of a multiprocessor; of a mean each takes as much as so many
    const Pool& op = *task.get<Pool>();
    const int rows = plan.integers.at("thread_rows");
    const double rows_read = static_cast<double>((rows - 1) * op.stride_h + op.kernel_h) / rows;
    // A word of two halves is one load.
    const double outputs =
        static_cast<double>(values_of(task.output)) * task.batch / elements_per_word(task.writes.element);
    const double loads = outputs * rows_read * op.kernel_w * (op.kind == PoolKind::average ? kMeanLoads : 1);
    // It is for eight images side by side, and was fitted to networks of 32 images on an H100, where VGG-19's five
    // pools take 186 us and ResNet-50's takes 27. The memory of ArchSpec is an H200's, which is 1.43 times as fast.
    constexpr double kOctetTransferLoss = 1.45;
    LaunchWork work = PlainProvider::work_of(task, plan);
    if (has_lines(task.reads[0].layout)) work.activation_bytes *= kOctetTransferLoss;
    work.busy_us = clocks_us(loads / (kLoadsPerClock * arch_of(task).multiprocessors), arch_of(task));
    return work;
  }
};

}  // namespace

const Provider& pool_provider() { return the_only<PoolProvider>(); }

}  // namespace burin
