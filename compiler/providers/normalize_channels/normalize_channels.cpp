// The channels of each pixel by what all of them are, then a scale and a shift.
#include <algorithm>

#include "compiler/providers/template_provider.h"
#include "ir/saturate.h"

namespace burin {
namespace {

constexpr int kMostWarps = kMaxThreadsPerBlock / kWarpSize, kMostHeld = 32;  // of normalize_channels.cu
constexpr int kHeldWords = 64;                                               // of a thread in registers
constexpr int kHeldWordsOfFullBlock = 24;  // where a block has all the threads that there may be

// How a block does it: words of a thread's piece, warps, and channels of a thread.
struct Block {
  int vector = 1, warps = 1, held = 1;
  bool fits() const {
    return held <= kMostHeld && held * vector <= (warps == kMostWarps ? kHeldWordsOfFullBlock : kHeldWords);
  }
};

// Blocks that an image has, or as many images as lie side by side.
std::int64_t blocks_of(const Task& task, const Block& block) {
  const std::int64_t pixels = place_words(task) == 1 ? block.vector : 1;
  return ceil_div(values_of(task.output, 1) / pixels, kWarpSize / channels_together(task.writes.layout));
}

Block block_of(const Task& task, int vector) {
  const std::int64_t rows = ceil_div(task.output[0], channels_together(task.writes.layout));
  const ArchSpec& arch = arch_of(task);
  const std::int64_t threads_wanted = std::int64_t{arch.multiprocessors} * arch.max_threads_per_multiprocessor / 4;
  const std::int64_t images = ceil_div(std::int64_t{task.batch}, images_together(task.writes.layout));
  Block block{vector};
  for (block.warps = 1;; block.warps *= 2) {
    block.held = saturate_to_int(ceil_div(rows, block.warps));
    constexpr int kWords = 24;  // that are loaded at once
    const bool enough = blocks_of(task, block) * images * block.warps * kWarpSize >= threads_wanted;
    const bool few = block.held * vector <= kWords && (enough || block.held <= 2);
    if (few || block.warps == kMostWarps) return block;
  }
}

class NormalizeChannelsProvider : public PlainProvider {
 public:
  NormalizeChannelsProvider() : PlainProvider("normalize_channels") {}

 protected:
  bool knows_formats() const override { return true; }
  bool can(const Task& task) const override {
    const Normalize* op = task.get<Normalize>();
    if (op == nullptr || op->axes != std::vector<int>{0} || task.output.size() < 2) return false;
    if (!has_one_format(task) || !block_of(task, element_words(task.writes.layout)).fits()) return false;
    const auto of_channels = [](const std::optional<ConstantOperand>& numbers) {
      return !numbers || values_of(numbers->shape, 1) == 1;
    };
    return of_channels(op->scale) && of_channels(op->shift);
  }
  std::vector<std::uint32_t> pack(const Task& task, const TemplatePlan&) const override {
    std::vector<std::uint32_t> words;
    const Normalize& op = *task.get<Normalize>();
    for (const auto* numbers : {&op.scale, &op.shift}) {
      if (!*numbers) continue;
      std::vector<float> values = (*numbers)->values;
      if (values.size() == 1) values.resize(static_cast<std::size_t>(task.output[0]), values[0]);
      append_words(words, values);
    }
    return words;
  }
  TemplatePlan plan(const Task& task, const TemplatePlan*) const override {
    const Normalize& op = *task.get<Normalize>();
    TemplatePlan plan = start(task);
    const std::int64_t channels = task.output[0], pixels = values_of(task.output, 1);
    plan.weights().run_words = channels * ((op.scale ? 1 : 0) + (op.shift ? 1 : 0));
    const Block block = choose(task, plan);
    if (block.vector == 1) set_narrow(plan);
    set_integers(plan, {{"normalization", static_cast<int>(op.normalization)},
                        {"scales", op.scale.has_value()},
                        {"shifts", op.shift.has_value()},
                        {"scale_words", op.scale ? channels : 0},
                        {"channels", channels},
                        {"plane", pixels},
                        {"vector", block.vector},
                        {"held", block.held}});
    plan.reals["epsilon"] = op.epsilon;
    set_function(plan, op.then);
    set_word_images(plan);
    LaunchGeometry& launch = plan.launch();
    launch.threads = block.warps * kWarpSize;
    launch.tiles_per_image = blocks_of(task, block);
    const int numbers = channels_together(task.writes.layout) > 1
                            ? 1
                            : block.vector * (task.writes.element == ElementType::f32 ? 1 : 2);
    constexpr int kExchanges = 2;
    launch.shared_bytes =
        block.warps == 1 ? 0 : kSharedReserveBytes + kExchanges * block.warps * numbers * kWarpSize * kWordBytes;
    return plan;
  }
  LaunchWork work_of(const Task& task, const TemplatePlan& plan) const override {
    LaunchWork work = PlainProvider::work_of(task, plan);
    work.waits = 3;  // for its values, then twice for the other warps
    return work;
  }

 private:
  // Four words at once where they may be and the GPU is full all the same.
  static Block choose(const Task& task, const TemplatePlan& plan) {
    if (place_words(task) > 1) return block_of(task, kVectorWords);
    const bool vectors =
        values_of(task.output, 1) % kVectorWords == 0 && is_wide(plan.input()) && is_wide(plan.output());
    const Block four = block_of(task, kVectorWords);
    const std::int64_t images = ceil_div(std::int64_t{task.batch}, images_together(task.writes.layout));
    const bool full = blocks_of(task, four) * images >= 2 * arch_of(task).multiprocessors;
    return vectors && full && four.fits() ? four : block_of(task, 1);
  }
};

}  // namespace

const Provider& normalize_channels_provider() { return the_only<NormalizeChannelsProvider>(); }

}  // namespace burin
