// Fully connected, dense. For few images weights are streamed: how outputs, images and threads are shared out. For
// many, a block has a tile of outputs and images.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <span>
#include <utility>

#include "compiler/providers/linear/layer_tiles.h"
#include "compiler/providers/template_provider.h"
#include "compiler/providers/tile_choices.h"
#include "ir/kernel.h"
#include "ir/saturate.h"

namespace burin {
namespace {

constexpr int kMaxRows = 4, kMaxImages = 8;  // of a block: linear.cu
constexpr int kPiecesAtOnce = 8;             // the same
constexpr int kMaxThreads = 128;
constexpr int kLeastTileImages = 5;  // for which tiles are proposed

// Several rows of a block share their loads of the input; with one image, filling the GPU comes first.
int choose_rows(const Linear& op, const Task& task) {
  if (task.batch > 1) return kMaxRows;
  constexpr int kBlocksOfMultiprocessor = 4;
  const int wanted = op.out_features / (arch_of(task).multiprocessors * kBlocksOfMultiprocessor);
  return wanted >= 4 ? 4 : wanted >= 2 ? 2 : 1;
}

// The most with which each has full rounds of loads, if possible without a rest.
int choose_threads(std::int64_t pieces, int steps) {
  const int most =
      static_cast<int>(std::clamp<std::int64_t>(pieces / steps / kWarpSize * kWarpSize, kWarpSize, kMaxThreads));
  for (int threads = most; threads >= 2 * kWarpSize; threads -= kWarpSize) {
    if (pieces % (threads * steps) == 0) return threads;
  }
  return most;
}

// A row as linear.cu reads it.
void append_row(std::vector<std::uint32_t>& words, std::span<const float> row, int vector, ElementType storage) {
  if (storage == ElementType::f32) {
    append_words(words, row);
  } else if (vector == 1) {
    for (std::size_t i = 0; i < row.size(); i += 2) {
      words.push_back(half_word(storage, row[i], i + 1 < row.size() ? row[i + 1] : 0));
    }
  } else {
    for (std::size_t first = 0; first < kVectorWords; first += 2) {
      for (std::size_t i = first; i < row.size(); i += kVectorWords) {
        words.push_back(half_word(storage, row[i], row[i + 1]));
      }
    }
  }
}

constexpr TileChoice<LayerTiles> kLayerChoices[] = {{"feature_threads", &LayerTiles::feature_threads},
                                                    {"feature_quads", &LayerTiles::feature_quads},
                                                    {"image_threads", &LayerTiles::image_threads},
                                                    {"image_quads", &LayerTiles::image_quads},
                                                    {"split_warps", &LayerTiles::split_warps},
                                                    {"split_terms", &LayerTiles::split_terms},
                                                    {"buffers", &LayerTiles::buffers}};

bool has_tiles(const TemplatePlan& plan) { return plan.integers.at("block_rows") == 0; }

LayerTiles layer_tiles_of(const TemplatePlan& plan) {
  LayerTiles tiles;
  read_choices(plan, kLayerChoices, tiles);
  tiles.cluster = plan.launch().cluster_tiles;
  return tiles;
}

// How a block streams its weights.
struct Streaming {
  int rows, images, threads;
};

class LinearProvider : public TemplateProvider {
 public:
  LinearProvider() : TemplateProvider("linear") {}

  bool is_dense() const override { return true; }
  // The choices of the plan's way alone.
  std::string brief(const std::string& text) const override {
    const TemplatePlan plan = parse_template_plan(text);
    const LaunchGeometry& launch = plan.launch();
    std::string brief = fmt::format("block_rows={}", plan.integers.at("block_rows"));
    if (!has_tiles(plan)) return brief + fmt::format(",images={},threads={}", launch.tile_images, launch.threads);
    for (const auto& [name, member] : kLayerChoices) brief += fmt::format(",{}={}", name, plan.integers.at(name));
    return brief + fmt::format(",cluster={}", launch.cluster_tiles);
  }

 protected:
  bool can(const Task& task) const override { return task.get<Linear>() != nullptr; }
  std::vector<std::string> choices() const override {
    return choice_names(kLayerChoices, {"block_rows", "images", "threads", "cluster"});
  }

  std::vector<Candidate> search(const Task& task, const ProposeOptions& options) const override {
    const Linear& op = *task.get<Linear>();
    const auto count = static_cast<std::size_t>(options.count);
    std::vector<Candidate> candidates = {candidate(task, streamed(task, choose_streaming(task)))};
    if (task.batch >= kLeastTileImages) {
      for (const LayerTiles& tiles : choose_layer_tiles(op, task.linear_storage, task.batch, arch_of(task), count)) {
        candidates.push_back(candidate(task, tiled(task, tiles)));
      }
    }
    std::ranges::stable_sort(candidates, {}, [](const Candidate& one) { return one.estimate.us; });
    if (candidates.size() > count) candidates.resize(count);
    return candidates;
  }

  double predict_us(const Task& task, const TemplatePlan& plan) const override {
    if (has_tiles(plan)) {
      return predict(layer_tiles_of(plan), *task.get<Linear>(), task.linear_storage, task.batch, arch_of(task));
    }
    constexpr double kIntakeGain = 1.3;  // of loads of whole warps, over the 4-byte copies of l2_bytes_per_clock
    const ArchSpec& arch = arch_of(task);
    const double images = plan.launch().tile_images, groups = std::ceil(task.batch / images);
    // Every block takes in its rows of the weights and its images, for a few outputs.
    const double weights = static_cast<double>(plan.weights().run_words) * kWordBytes;
    const double of_row = weights / task.get<Linear>()->out_features;
    const double blocks = static_cast<double>(plan.launch().tiles_per_image);
    const double rows = plan.integers.at("block_rows");
    const double image_bytes = static_cast<double>(task.get<Linear>()->in_features) * kWordBytes;
    const double intake = groups * blocks * (rows * of_row + images * image_bytes);
    return launch_time_us({.busy_us = std::max(clocks_us(intake / (kIntakeGain * arch.l2_bytes_per_clock), arch),
                                               clocks_us(weights / arch.device_bytes_per_clock, arch)),
                           .waits = 2},  // for the last loads, and for the sums of the other warps
                          arch);
  }

  TemplatePlan plan_as(const Task& task, const TemplatePlan& chosen) const override {
    if (has_tiles(chosen)) return tiled(task, layer_tiles_of(chosen));
    const LaunchGeometry& launch = chosen.launch();
    const Streaming streaming = {chosen.integers.at("block_rows"), launch.tile_images, launch.threads};
    // Each output is one thread's in the end.
    const bool fits = streaming.images <= kMaxImages && streaming.rows * streaming.images <= streaming.threads;
    return fits ? streamed(task, streaming) : start(task);
  }

  std::vector<std::uint32_t> pack(const Task& task, const TemplatePlan& plan) const override {
    const Linear op = stored_linear(task);
    if (has_tiles(plan)) return pack_tiles(layer_tiles_of(plan), op, task.linear_storage);
    std::vector<std::uint32_t> words;
    words.reserve(static_cast<std::size_t>(plan.weights().run_words));
    const auto features = static_cast<std::size_t>(op.in_features);
    for (std::size_t first = 0; first < op.weights.size(); first += features) {
      append_row(words, std::span(op.weights).subspan(first, features), plan.integers.at("vector"),
                 task.linear_storage);
    }
    append_words(words, op.bias);
    return words;
  }

 private:
  // Starts what both ways have in common.
  TemplatePlan begin(const Task& task) const {
    const Linear& op = *task.get<Linear>();
    TemplatePlan plan = start(task);
    set_integers(plan, {{"in_features", op.in_features},
                        {"out_features", op.out_features},
                        {"has_bias", !op.bias.empty()},
                        {"half_values", task.linear_storage != ElementType::f32}});
    set_function(plan, op.function);
    return plan;
  }

  static int vector_of(const Task& task) {
    return task.get<Linear>()->in_features % kVectorWords == 0 && is_wide(task.reads[0]) ? kVectorWords : 1;
  }

  static Streaming choose_streaming(const Task& task) {
    const Linear& op = *task.get<Linear>();
    const int rows = choose_rows(op, task);
    const auto images = static_cast<int>(std::bit_ceil(static_cast<unsigned>(task.batch)));
    return {rows, std::min(kMaxImages, images), choose_threads(op.in_features / vector_of(task), kPiecesAtOnce / rows)};
  }

  TemplatePlan streamed(const Task& task, const Streaming& block) const {
    const Linear& op = *task.get<Linear>();
    TemplatePlan plan = begin(task);
    const int vector = vector_of(task);
    plan.output().alignment = kWordBytes;
    if (vector == 1) plan.input().alignment = kWordBytes;
    LaunchGeometry& launch = plan.launch();
    launch.tile_images = block.images;
    launch.threads = block.threads;
    launch.tiles_per_image = ceil_div(op.out_features, block.rows);
    const std::int64_t exchanged =
        std::int64_t{block.rows} * launch.tile_images * (launch.threads / kWarpSize) * kWordBytes;
    launch.shared_bytes = static_cast<int>(round_up(kSharedReserveBytes + exchanged, kWideAccessBytes));
    const std::int64_t row_words = ceil_div(op.in_features, elements_per_word(task.linear_storage));
    set_integers(plan, {{"row_words", row_words}, {"block_rows", block.rows}, {"vector", vector}});
    write_choices(LayerTiles(), kLayerChoices, plan);
    plan.weights().run_words = row_words * op.out_features + static_cast<std::int64_t>(op.bias.size());
    return plan;
  }

  // The plan has no constants where the tiles do not fit.
  TemplatePlan tiled(const Task& task, const LayerTiles& tiles) const {
    const Linear& op = *task.get<Linear>();
    if (!fits(tiles, task.linear_storage, arch_of(task))) return start(task);
    TemplatePlan plan = begin(task);
    const bool vectors = op.out_features % kVectorWords == 0 && is_wide(plan.output());
    plan.input().alignment = kWordBytes;
    if (!vectors) plan.output().alignment = kWordBytes;
    LaunchGeometry& launch = plan.launch();
    launch.tile_images = tiles.images();
    launch.threads = tiles.threads();
    launch.tiles_per_image = tiles.blocks(op);
    launch.cluster_tiles = tiles.cluster;
    launch.shared_bytes = tiles.shared_bytes(task.linear_storage);
    set_integers(plan, {{"row_words", tiles.row_words(task.linear_storage)},
                        {"block_rows", 0},
                        {"vector", vectors ? kVectorWords : 1}});
    write_choices(tiles, kLayerChoices, plan);
    plan.weights().run_words = tiles.weight_words(op, task.linear_storage);
    return plan;
  }
};

}  // namespace

const Provider& linear_provider() { return the_only<LinearProvider>(); }

}  // namespace burin
