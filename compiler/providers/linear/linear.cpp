// Fully connected, dense: weights are streamed. How outputs, images and threads are shared out.
#include <algorithm>
#include <bit>
#include <cmath>
#include <span>
#include <utility>

#include "compiler/providers/template_provider.h"
#include "ir/kernel.h"
#include "ir/saturate.h"

namespace burin {
namespace {

constexpr int kMaxRows = 4, kMaxImages = 8;  // of a block: linear.cu
constexpr int kPiecesAtOnce = 8;             // the same
constexpr int kMaxThreads = 128;

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

class LinearProvider : public PlainProvider {
 public:
  LinearProvider() : PlainProvider("linear") {}

  bool is_dense() const override { return true; }

 protected:
  std::vector<std::string> choices() const override { return {"block_rows", "images", "threads"}; }
  double predict_us(const Task& task, const TemplatePlan& plan) const override {
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
  bool can(const Task& task) const override { return task.get<Linear>() != nullptr; }

  TemplatePlan plan(const Task& task, const TemplatePlan* chosen) const override {
    const Linear& op = *task.get<Linear>();
    TemplatePlan plan = start(task);
    const int vector = vector_of(task, plan);
    plan.output().alignment = kWordBytes;
    if (vector == 1) plan.input().alignment = kWordBytes;
    LaunchGeometry& launch = plan.launch();
    int rows = 1;
    if (chosen != nullptr) {
      rows = chosen->integers.at("block_rows");
      launch.tile_images = chosen->launch().tile_images;
      launch.threads = chosen->launch().threads;
    } else {
      rows = choose_rows(op, task);
      launch.tile_images =
          std::min<int>(kMaxImages, static_cast<int>(std::bit_ceil(static_cast<unsigned>(task.batch))));
      launch.threads = choose_threads(op.in_features / vector, kPiecesAtOnce / rows);
    }
    launch.tiles_per_image = ceil_div(op.out_features, rows);
    const std::int64_t exchanged = std::int64_t{rows} * launch.tile_images * (launch.threads / kWarpSize) * kWordBytes;
    launch.shared_bytes = static_cast<int>(round_up(kSharedReserveBytes + exchanged, kWideAccessBytes));
    const std::int64_t row_words = ceil_div(op.in_features, elements_per_word(task.linear_storage));
    set_integers(plan, {{"in_features", op.in_features},
                        {"out_features", op.out_features},
                        {"row_words", row_words},
                        {"block_rows", rows},
                        {"has_bias", !op.bias.empty()},
                        {"vector", vector},
                        {"half_values", task.linear_storage != ElementType::f32}});
    set_function(plan, op.function);
    plan.weights().run_words = row_words * op.out_features + static_cast<std::int64_t>(op.bias.size());
    return plan;
  }

  std::vector<std::uint32_t> pack(const Task& task, const TemplatePlan& plan) const override {
    const Linear op = stored_linear(task);
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
  static int vector_of(const Task& task, const TemplatePlan& plan) {
    return task.get<Linear>()->in_features % kVectorWords == 0 && is_wide(plan.input()) ? kVectorWords : 1;
  }
};

}  // namespace

const Provider& linear_provider() { return the_only<LinearProvider>(); }

}  // namespace burin
