// The means of an image's channels and two fully connected layers of them, by the blocks of a cluster.
#include <algorithm>

#include "compiler/providers/template_provider.h"
#include "ir/saturate.h"

namespace burin {
namespace {

constexpr int kThreads = 512;
constexpr std::int64_t kMostSharedWeights = 96 << 10;  // bytes: two blocks still fit on a multiprocessor

// What a block has.
struct GateBlock {
  std::int64_t images, in_channels, out_channels, weight_words;
  int warps;  // that share a plane
  bool weights_in_shared;
  std::int64_t shared_bytes;
};

class GateProvider : public PlainProvider {
 public:
  GateProvider() : PlainProvider("gate") {}

 protected:
  bool knows_formats() const override { return true; }
  std::vector<std::string> choices() const override { return {"cluster"}; }
  bool can(const Task& task) const override {
    const TensorFormat input = task.reads[0].format(), output = task.writes.format();
    return task.get<Gate>() != nullptr && input.layout != TensorLayout::nchw4 &&
           (output.is_plain() || output == input) &&
           block_of(task, most_blocks(task)).shared_bytes <= arch_of(task).max_shared_per_block;
  }

  TemplatePlan plan(const Task& task, const TemplatePlan* chosen) const override {
    const Gate& op = *task.get<Gate>();
    TemplatePlan plan = start(task);
    const int blocks = chosen != nullptr ? chosen->launch().cluster_tiles : choose_blocks(task);
    if (blocks < 1 || blocks > most_blocks(task)) return plan;
    const GateBlock block = block_of(task, blocks);
    if (block.shared_bytes > arch_of(task).max_shared_per_block) return plan;
    const int vector = vector_of(task);
    if (vector == 1) plan.input().alignment = kWordBytes;
    plan.output().alignment = words_together(plan.output().layout) * kWordBytes;
    LaunchGeometry& launch = plan.launch();
    launch.threads = kThreads;
    launch.tiles_per_image = launch.cluster_tiles = blocks;
    launch.shared_bytes = static_cast<int>(block.shared_bytes);
    set_word_images(plan);
    set_integers(plan, {{"elements", plane_words(task)},
                        {"vector", vector},
                        {"warps", block.warps},
                        {"features", op.squeeze.out_features},
                        {"in_channels", block.in_channels},
                        {"out_channels", block.out_channels},
                        {"stored_channels", read_channels(task)},
                        {"weights_in_shared", block.weights_in_shared},
                        {"feature_function", 0}});
    set_function(plan, op.squeeze.function);
    plan.integers["feature_function"] = plan.integers.at("function");
    plan.reals["feature_alpha"] = plan.reals.at("alpha");
    plan.reals["feature_beta"] = plan.reals.at("beta");
    set_function(plan, op.expand.function);
    plan.weights().run_words = blocks * block.weight_words;
    return plan;
  }

  std::vector<std::uint32_t> pack(const Task& task, const TemplatePlan& plan) const override {
    const Gate& op = *task.get<Gate>();
    const GateBlock block = block_of(task, plan.launch().cluster_tiles);
    const auto or_zero = [](const std::vector<float>& values, std::int64_t index, bool exists) {
      return exists && !values.empty() ? values[static_cast<std::size_t>(index)] : 0.0F;
    };
    std::vector<std::uint32_t> words;
    for (int rank = 0; rank < plan.launch().cluster_tiles; ++rank) {
      std::vector<float> values;
      const std::int64_t first_in = rank * block.in_channels, first_out = rank * block.out_channels;
      const int ins = op.squeeze.in_features, features = op.squeeze.out_features, outs = op.expand.out_features;
      for (std::int64_t m = 0; m < features; ++m) {
        for (std::int64_t c = first_in; c < first_in + block.in_channels; ++c) {
          values.push_back(or_zero(op.squeeze.weights, m * ins + c, c < ins));
        }
      }
      for (std::int64_t m = 0; m < features; ++m) values.push_back(or_zero(op.squeeze.bias, m, true));
      for (std::int64_t m = 0; m < features; ++m) {
        for (std::int64_t k = first_out; k < first_out + block.out_channels; ++k) {
          values.push_back(or_zero(op.expand.weights, k * features + m, k < outs));
        }
      }
      for (std::int64_t k = first_out; k < first_out + block.out_channels; ++k) {
        values.push_back(or_zero(op.expand.bias, k, k < outs));
      }
      values.resize(static_cast<std::size_t>(block.weight_words));
      append_words(words, values);
    }
    return words;
  }

 private:
  static std::int64_t together(const Task& task) { return channels_together(task.reads[0].layout); }
  static std::int64_t read_channels(const Task& task) { return round_up(task.inputs[0][0], together(task)); }
  // Of one channel, or of as many as lie side by side.
  static std::int64_t plane_words(const Task& task) {
    return values_of(task.inputs[0], 1) * place_words(task) * together(task);
  }
  static int vector_of(const Task& task) {
    return plane_words(task) % kVectorWords == 0 && is_wide(task.reads[0]) ? kVectorWords : 1;
  }
  static std::int64_t image_groups(const Task& task) {
    return ceil_div(task.batch, images_together(task.reads[0].layout));
  }

  static int most_blocks(const Task& task) { return arch_of(task).clusters ? kMaxClusterBlocks : 1; }

  // As many as can be, while all of them run at once; more where they would not have room otherwise.
  static int choose_blocks(const Task& task) {
    const ArchSpec& arch = arch_of(task);
    const std::int64_t planes = read_channels(task) / together(task);
    int blocks = most_blocks(task);
    const auto fits = [&](int fewer) { return block_of(task, fewer).shared_bytes <= arch.max_shared_per_block; };
    const auto is_too_many = [&] {
      return blocks > planes || image_groups(task) * blocks > 2 * std::int64_t{arch.multiprocessors};
    };
    while (blocks > 1 && is_too_many() && fits(blocks / 2)) blocks /= 2;
    return blocks;
  }

  static GateBlock block_of(const Task& task, int blocks) {
    const Gate& op = *task.get<Gate>();
    GateBlock block{};
    block.images = images_together(task.reads[0].layout);
    block.in_channels = ceil_div(read_channels(task) / together(task), blocks) * together(task);
    block.out_channels =
        ceil_div(round_up(op.expand.out_features, together(task)) / together(task), blocks) * together(task);
    const std::int64_t features = op.squeeze.out_features;
    block.weight_words =
        round_up(features * (block.in_channels + block.out_channels + 1) + block.out_channels, kVectorWords);
    block.weights_in_shared = block.weight_words * kWordBytes <= kMostSharedWeights;
    block.warps = warps_for(plane_words(task) / vector_of(task), block.in_channels / together(task));
    const std::int64_t floats = (block.warps + 1) * block.in_channels + 2 * features;
    block.shared_bytes = round_up(kSharedReserveBytes + floats * block.images * kWordBytes +
                                      (block.weights_in_shared ? block.weight_words * kWordBytes : 0),
                                  kWideAccessBytes);
    return block;
  }

  // All that a block has, where there are few planes; else so many that each loads a few times.
  static int warps_for(std::int64_t pieces, std::int64_t planes) {
    constexpr std::int64_t kRoundPieces = 8 * kWarpSize;  // that are in flight
    int warps = 1;
    while (warps * 2 <= kThreads / kWarpSize && warps * kRoundPieces < pieces && planes * warps * 2 <= kMostWarpPlanes)
      warps *= 2;
    return warps;
  }
  static constexpr std::int64_t kMostWarpPlanes = 1 << 9;  // what the warps of a block take in turn

  LaunchWork work_of(const Task& task, const TemplatePlan& plan) const override {
    constexpr double kBytesPerClock = 24;  // that a multiprocessor reads
    constexpr double kStepClocks = 2500;   // barriers, and ways to shared memory and to that of other blocks
    constexpr double kLoadsPerClock = 32;  // from shared memory
    constexpr double kFeatureClocks = 8;   // of the second layer's sums, one feature after the other
    const Gate& op = *task.get<Gate>();
    const ArchSpec& arch = arch_of(task);
    const int blocks = plan.launch().cluster_tiles;
    const GateBlock block = block_of(task, blocks);
    const double channels = static_cast<double>(block.in_channels + block.out_channels);
    const double loads = op.squeeze.out_features * channels * (1 + static_cast<double>(ceil_div(block.images, 4)));
    const double read = static_cast<double>(block.in_channels / together(task) * plane_words(task) * kWordBytes) +
                        static_cast<double>(block.weight_words * kWordBytes);
    const double clocks =
        read / kBytesPerClock + loads / kLoadsPerClock + kStepClocks + kFeatureClocks * op.squeeze.out_features;
    const double turns = static_cast<double>(ceil_div(image_groups(task) * blocks, arch.multiprocessors));
    return {.busy_us = clocks_us(clocks * turns, arch), .waits = 2, .activation_bytes = activation_bytes(task)};
  }
};

}  // namespace

const Provider& gate_provider() { return the_only<GateProvider>(); }

}  // namespace burin
