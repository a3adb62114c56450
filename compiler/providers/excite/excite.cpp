// The features of squeeze-and-excitation, the second layer and the product, by blocks that have some channels and
// pixels.
#include <algorithm>
#include <cmath>

#include "compiler/providers/template_provider.h"
#include "ir/saturate.h"

namespace burin {
namespace {

// What a block has.
struct ExciteBlock {
  std::int64_t channels, elements;  // words of a channel, or of as many as lie side by side
  std::int64_t pixel_blocks, channel_blocks, run_words, shared_bytes;
  int vector, sum_vector, sharers;
  bool weights_in_shared;
};

class ExciteProvider : public PlainProvider {
 public:
  ExciteProvider() : PlainProvider("excite") {}

 protected:
  bool knows_formats() const override { return true; }
  std::vector<std::string> choices() const override { return {"steps"}; }
  bool can(const Task& task) const override {
    if (task.get<Excite>() == nullptr || task.reads.size() != 2) return false;
    const TensorFormat input = task.reads[0].format();
    return input.layout != TensorLayout::nchw4 && task.writes.format() == input && task.reads[1].format().is_plain() &&
           block_of(task, 1).shared_bytes <= arch_of(task).max_shared_per_block;
  }

  TemplatePlan plan(const Task& task, const TemplatePlan* chosen) const override {
    const Excite& op = *task.get<Excite>();
    TemplatePlan plan = start(task);
    const int steps = chosen != nullptr ? static_cast<int>(chosen->integers.at("steps")) : steps_for(task);
    const ExciteBlock block = block_of(task, steps);
    if (block.vector == 1) set_narrow(plan);
    if (block.sum_vector == 1) plan.residual().alignment = kWordBytes;
    LaunchGeometry& launch = plan.launch();
    launch.threads = threads_of(task);
    launch.tiles_per_image = block.channel_blocks * block.pixel_blocks;
    launch.shared_bytes = static_cast<int>(block.shared_bytes);
    set_word_images(plan);
    set_integers(plan, {{"plane", plane_words(task)},
                        {"elements", block.elements},
                        {"vector", block.vector},
                        {"steps", steps},
                        {"features", op.expand.in_features},
                        {"parts", task.inputs[1][0]},
                        {"sum_vector", block.sum_vector},
                        {"sharers", block.sharers},
                        {"block_channels", block.channels},
                        {"stored_channels", read_channels(task)},
                        {"pixel_blocks", block.pixel_blocks},
                        {"weights_in_shared", block.weights_in_shared},
                        {"feature_function", 0}});
    set_function(plan, op.function);
    plan.integers["feature_function"] = plan.integers.at("function");
    plan.reals["feature_alpha"] = plan.reals.at("alpha");
    plan.reals["feature_beta"] = plan.reals.at("beta");
    set_function(plan, op.expand.function);
    plan.weights().run_words = block.channel_blocks * block.run_words;
    return plan;
  }

  std::vector<std::uint32_t> pack(const Task& task, const TemplatePlan& plan) const override {
    const Excite& op = *task.get<Excite>();
    const ExciteBlock block = block_of(task, static_cast<int>(plan.integers.at("steps")));
    const std::int64_t features = op.expand.in_features, channels = op.expand.out_features;
    const auto or_zero = [](const std::vector<float>& values, std::int64_t index, bool exists) {
      return exists && !values.empty() ? values[static_cast<std::size_t>(index)] : 0.0F;
    };
    std::vector<std::uint32_t> words;
    for (std::int64_t number = 0; number < block.channel_blocks; ++number) {
      std::vector<float> values;
      const std::int64_t first = number * block.channels, end = first + block.channels;
      for (std::int64_t c = first; c < end; ++c) {
        for (std::int64_t m = 0; m < features; ++m) {
          values.push_back(or_zero(op.expand.weights, c * features + m, c < channels));
        }
      }
      for (std::int64_t c = first; c < end; ++c) values.push_back(or_zero(op.expand.bias, c, c < channels));
      for (std::int64_t m = 0; m < features; ++m) values.push_back(or_zero(op.bias, m, true));
      values.resize(static_cast<std::size_t>(block.run_words));
      append_words(words, values);
    }
    return words;
  }

 private:
  static constexpr int kMostSteps = 8;
  // Of eight images side by side a block has eight times the features to compute: more blocks then cover each other.
  static int threads_of(const Task& task) { return images(task) == kMostImages ? 256 : 512; }
  static constexpr int kMostImages = 8;
  static constexpr std::int64_t kMostSharedWeights = 48 << 10;  // bytes: several blocks still fit on a multiprocessor
  static std::int64_t together(const Task& task) { return channels_together(task.reads[0].layout); }
  static std::int64_t images(const Task& task) { return images_together(task.reads[0].layout); }
  static std::int64_t read_channels(const Task& task) { return round_up(task.inputs[0][0], together(task)); }
  // One channel has so many, or as many channels as lie side by side.
  static std::int64_t plane_words(const Task& task) {
    return values_of(task.inputs[0], 1) * place_words(task) * together(task);
  }
  static int vector_of(const Task& task) {
    const bool wide = is_wide(task.reads[0]) && is_wide(task.writes);
    return plane_words(task) % kVectorWords == 0 && wide ? kVectorWords : 1;
  }

  // More only where all multiprocessors are full without.
  static int steps_for(const Task& task) {
    const std::int64_t words = plane_words(task) * (read_channels(task) / together(task)) *
                               ceil_div(task.batch, images(task)),
                       turn = std::int64_t{arch_of(task).multiprocessors} * threads_of(task) * vector_of(task);
    int steps = 1;
    while (steps < kMostSteps && words >= 2 * turn * steps) steps *= 2;
    return steps;
  }

  // Whole planes, as many as its threads have pieces for, or a part of one.
  static ExciteBlock block_of(const Task& task, int steps) {
    const Excite& op = *task.get<Excite>();
    ExciteBlock block{};
    block.vector = vector_of(task);
    const std::int64_t plane = plane_words(task), most = std::int64_t{threads_of(task)} * steps * block.vector;
    const std::int64_t planes = read_channels(task) / together(task);
    const std::int64_t own = std::clamp<std::int64_t>(most / plane, 1, planes);
    block.pixel_blocks = ceil_div(plane, most);
    block.elements = block.pixel_blocks == 1 ? plane : most;
    block.channels = own * together(task);
    block.channel_blocks = ceil_div(planes, own);
    const std::int64_t features = op.expand.in_features, sums = features * images(task);
    block.run_words = round_up(block.channels * (features + 1) + features, kVectorWords);
    block.weights_in_shared = block.run_words * kWordBytes <= kMostSharedWeights;
    block.sum_vector = features % kVectorWords == 0 && is_wide(task.reads[1]) ? kVectorWords : 1;
    block.sharers =
        static_cast<int>(std::clamp<std::int64_t>(threads_of(task) * block.sum_vector / sums, 1, task.inputs[1][0]));
    const std::int64_t floats = (block.sharers + 1) * sums + block.channels * images(task);
    block.shared_bytes = round_up(
        kSharedReserveBytes + floats * kWordBytes + (block.weights_in_shared ? block.run_words * kWordBytes : 0),
        kWideAccessBytes);
    return block;
  }

  LaunchWork work_of(const Task& task, const TemplatePlan& plan) const override {
    constexpr double kStepClocks = 1200;  // barriers, and ways to the sums and to shared memory
    const ExciteBlock block = block_of(task, static_cast<int>(plan.integers.at("steps")));
    const Excite& op = *task.get<Excite>();
    const double blocks =
        static_cast<double>(plan.launch().tiles_per_image) * static_cast<double>(ceil_div(task.batch, images(task)));
    const double turns = std::ceil(blocks / (2.0 * arch_of(task).multiprocessors));
    const double sums =
        static_cast<double>(task.inputs[1][0] * op.expand.in_features * images(task)) / threads_of(task);
    const double clocks = turns * (kStepClocks + 8 * sums / block.sum_vector +
                                   static_cast<double>(block.channels * op.expand.in_features) / kWarpSize);
    return {.busy_us = clocks_us(clocks, arch_of(task)), .waits = 2, .activation_bytes = activation_bytes(task)};
  }
};

}  // namespace

const Provider& excite_provider() { return the_only<ExciteProvider>(); }

}  // namespace burin
