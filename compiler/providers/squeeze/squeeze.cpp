// What parts of an image add to the features of squeeze-and-excitation, a block for each.
#include <algorithm>
#include <cmath>

#include "compiler/providers/template_provider.h"
#include "ir/saturate.h"

namespace burin {
namespace {

class SqueezeProvider : public PlainProvider {
 public:
  SqueezeProvider() : PlainProvider("squeeze") {}

 protected:
  bool knows_formats() const override { return true; }
  bool can(const Task& task) const override {
    const Squeeze* op = task.get<Squeeze>();
    if (op == nullptr || task.reads[0].layout == TensorLayout::nchw4 || !task.writes.format().is_plain()) return false;
    return (together(task) == 1 || op->part_channels % together(task) == 0) &&
           shared_bytes(task) <= arch_of(task).max_shared_per_block;
  }

  TemplatePlan plan(const Task& task, const TemplatePlan*) const override {
    const Squeeze& op = *task.get<Squeeze>();
    TemplatePlan plan = start(task);
    const int vector = vector_of(task);
    if (vector == 1) plan.input().alignment = kWordBytes;
    plan.output().alignment = kWordBytes;
    LaunchGeometry& launch = plan.launch();
    launch.threads = kThreads;
    launch.tiles_per_image = op.parts(task.inputs[0]);
    launch.shared_bytes = static_cast<int>(shared_bytes(task));
    set_word_images(plan);
    set_integers(plan, {{"elements", part_words(task)},
                        {"plane", plane_words(task)},
                        {"vector", vector},
                        {"warps", warps(task)},
                        {"features", op.features},
                        {"part_channels", op.part_channels},
                        {"stored_channels", read_channels(task)},
                        {"pixel_parts", op.pixel_parts(task.inputs[0])},
                        {"weights_in_shared", weights_in_shared(op)}});
    plan.weights().run_words = channel_parts(task) * run_words(op);
    return plan;
  }

  std::vector<std::uint32_t> pack(const Task& task, const TemplatePlan&) const override {
    const Squeeze& op = *task.get<Squeeze>();
    const std::int64_t channels = task.inputs[0][0];
    std::vector<std::uint32_t> words;
    for (std::int64_t part = 0; part < channel_parts(task); ++part) {
      std::vector<float> values;
      for (std::int64_t c = part * op.part_channels; c < (part + 1) * op.part_channels; ++c) {
        for (std::int64_t m = 0; m < op.features; ++m) {
          values.push_back(c < channels ? op.weights[static_cast<std::size_t>(m * channels + c)] : 0.0F);
        }
      }
      values.resize(static_cast<std::size_t>(run_words(op)));
      append_words(words, values);
    }
    return words;
  }

 private:
  static constexpr int kThreads = 256;
  static constexpr std::int64_t kMostSharedWeights = 96 << 10;  // bytes: two blocks still fit on a multiprocessor
  static std::int64_t together(const Task& task) { return channels_together(task.reads[0].layout); }
  static std::int64_t read_channels(const Task& task) { return round_up(task.inputs[0][0], together(task)); }
  static std::int64_t channel_parts(const Task& task) {
    return ceil_div(task.inputs[0][0], task.get<Squeeze>()->part_channels);
  }
  // One channel has so many, or as many channels as lie side by side.
  static std::int64_t pixel_words(const Task& task) { return place_words(task) * together(task); }
  static std::int64_t plane_words(const Task& task) { return values_of(task.inputs[0], 1) * pixel_words(task); }
  static std::int64_t part_words(const Task& task) {
    return std::min(task.get<Squeeze>()->part_pixels * pixel_words(task), plane_words(task));
  }
  static int vector_of(const Task& task) {
    const bool whole = plane_words(task) % kVectorWords == 0 && part_words(task) % kVectorWords == 0;
    return whole && is_wide(task.reads[0]) ? kVectorWords : 1;
  }
  static std::int64_t run_words(const Squeeze& op) {
    return round_up(std::int64_t{op.features} * op.part_channels, kVectorWords);
  }
  static bool weights_in_shared(const Squeeze& op) { return run_words(op) * kWordBytes <= kMostSharedWeights; }
  static std::int64_t shared_bytes(const Task& task) {
    const Squeeze& op = *task.get<Squeeze>();
    const std::int64_t floats = (warps(task) + 1) * std::int64_t{op.part_channels} * images(task);
    return round_up(
        kSharedReserveBytes + floats * kWordBytes + (weights_in_shared(op) ? run_words(op) * kWordBytes : 0),
        kWideAccessBytes);
  }
  static std::int64_t images(const Task& task) { return images_together(task.reads[0].layout); }

  // As many for a channel as leave none of the block idle, while each has something to load.
  static int warps(const Task& task) {
    const std::int64_t pieces = part_words(task) / vector_of(task),
                       planes = ceil_div(task.get<Squeeze>()->part_channels, together(task));
    int warps = 1;
    while (warps * 2 * planes <= kThreads / kWarpSize && warps * kWarpSize < pieces) warps *= 2;
    return warps;
  }

  LaunchWork work_of(const Task& task, const TemplatePlan& plan) const override {
    constexpr double kStepClocks = 900;   // barriers, and ways to shared memory
    constexpr double kChannelClocks = 8;  // of the features' sums, one channel after the other
    constexpr double kBytesPerClock = 40;
    const Squeeze& op = *task.get<Squeeze>();
    const double blocks =
        static_cast<double>(plan.launch().tiles_per_image) * static_cast<double>(ceil_div(task.batch, images(task)));
    const double turns = std::ceil(blocks / arch_of(task).multiprocessors);
    const double bytes = static_cast<double>(part_words(task) * kWordBytes) *
                         static_cast<double>(ceil_div(op.part_channels, together(task)));
    const double clocks = kStepClocks + kChannelClocks * op.part_channels + turns * bytes / kBytesPerClock;
    return {.busy_us = clocks_us(clocks, arch_of(task)), .activation_bytes = activation_bytes(task)};
  }
};

}  // namespace

const Provider& squeeze_provider() { return the_only<SqueezeProvider>(); }

}  // namespace burin
