// Fully connected, sparse: values and distances are streamed. How outputs, images and threads are shared out.
#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "compiler/providers/template_provider.h"
#include "ir/error.h"
#include "ir/kernel.h"
#include "ir/saturate.h"

namespace burin {
namespace {

constexpr int kBlockImages = 4;  // side by side in shared memory, one load each: linear_sparse.cu
constexpr int kMaxWarps = 16;

std::int64_t shared_bytes(int in_features, int images) {
  return round_up(kSharedReserveBytes + std::int64_t{in_features} * images * kWordBytes, kWideAccessBytes);
}

// 0: not even one fits.
int choose_images(int in_features, const Task& task) {
  const int most = arch_of(task).max_shared_per_block;
  if (task.batch > 1 && shared_bytes(in_features, kBlockImages) <= most) return kBlockImages;
  return shared_bytes(in_features, 1) <= most ? 1 : 0;
}

struct SparseChoices {
  int images = 1, warps = 1;  // of a block
  std::int64_t warp_rows = 1;
  int delta_words = 1;
  std::int64_t weight_words = 0;
};

// Takes as many blocks as run at once, each with many outputs: every block copies its images.
void share_out(SparseChoices& choices, const Linear& op, const Task& task) {
  const ArchSpec& arch = arch_of(task);
  const int resident = shared_bytes(op.in_features, choices.images) <= arch.max_shared_per_block / 2 ? 2 : 1;
  const std::int64_t groups = ceil_div(task.batch, choices.images);
  const std::int64_t blocks = std::max<std::int64_t>(1, std::int64_t{arch.multiprocessors} * resident / groups);
  choices.warps = static_cast<int>(std::clamp<std::int64_t>(ceil_div(op.out_features, blocks), 1, kMaxWarps));
  choices.warp_rows = ceil_div(op.out_features, blocks * choices.warps);
}

constexpr int kSteps = 4;  // of a group
constexpr int kWordBits = 32;

struct Entry {
  float value = 0;
  std::uint32_t delta = 0;
};

struct Lane {
  std::uint32_t first = 0;  // the feature of the first entry
  std::vector<Entry> entries;
};
using Row = std::array<Lane, kWarpSize>;

// Gives each lane in turn as many nonzeros as it has steps for. False when they do not all find a place.
bool fill_lanes(const std::vector<std::pair<std::uint32_t, float>>& nonzeros, std::size_t steps,
                std::uint32_t largest_delta, Row& row) {
  row = {};
  std::size_t lane = 0;
  std::uint32_t last = 0;
  for (const auto& [feature, value] : nonzeros) {
    std::uint32_t delta = feature - last;
    const std::size_t zeros = delta == 0 ? 0 : (delta - 1) / largest_delta;
    if (row[lane].entries.size() + zeros + 1 > steps) ++lane;
    if (lane == row.size()) return false;
    std::vector<Entry>& entries = row[lane].entries;
    if (entries.empty()) {
      row[lane].first = feature;
      delta = 0;
    }
    for (; delta > largest_delta; delta -= largest_delta) entries.push_back({0, largest_delta});
    entries.push_back({value, delta});
    last = feature;
  }
  return true;
}

Row shares_of(const Linear& op, std::size_t output, std::uint32_t largest_delta) {
  std::vector<std::pair<std::uint32_t, float>> nonzeros;
  const auto features = static_cast<std::size_t>(op.in_features);
  for (std::size_t c = 0; c < features; ++c) {
    const float value = op.weights[output * features + c];
    if (value != 0) nonzeros.emplace_back(static_cast<std::uint32_t>(c), value);
  }
  Row row;
  auto steps =
      static_cast<std::size_t>(round_up(ceil_div(static_cast<std::int64_t>(nonzeros.size()), kWarpSize), kSteps));
  while (!fill_lanes(nonzeros, steps, largest_delta, row)) steps += kSteps;
  for (Lane& lane : row) lane.entries.resize(steps);
  return row;
}

void append_values(std::vector<std::uint32_t>& words, const Row& row, std::size_t group, ElementType storage) {
  if (storage == ElementType::f32) {
    for (const Lane& lane : row) {
      for (std::size_t i = 0; i < kSteps; ++i)
        words.push_back(std::bit_cast<std::uint32_t>(lane.entries[group + i].value));
    }
    return;
  }
  for (std::size_t i = 0; i < kSteps; i += 2) {
    for (const Lane& lane : row) {
      words.push_back(half_word(storage, lane.entries[group + i].value, lane.entries[group + i + 1].value));
    }
  }
}

void append(std::vector<std::uint32_t>& words, const Row& row, int delta_words, ElementType storage) {
  const int bits = delta_words * kWordBits / kSteps;
  for (const Lane& lane : row) words.push_back(lane.first);
  for (std::size_t group = 0; group < row[0].entries.size(); group += kSteps) {
    append_values(words, row, group, storage);
    const std::size_t deltas = words.size();
    words.resize(deltas + static_cast<std::size_t>(kWarpSize * delta_words));
    for (std::size_t lane = 0; lane < row.size(); ++lane) {
      for (int i = 0; i < kSteps; ++i) {
        const int bit = i * bits, word = bit / kWordBits;
        words[deltas + static_cast<std::size_t>(word * kWarpSize) + lane] |=
            row[lane].entries[group + static_cast<std::size_t>(i)].delta << bit % kWordBits;
      }
    }
  }
}

// The nonzeros as linear_sparse.cu streams them. `delta_words`: words for four distances, 1 or 2: 8 or 16 bits each.
// `storage`: f32, or f16, which must be able to hold the weights.
std::vector<std::uint32_t> pack_sparse_rows(const Linear& op, int delta_words, ElementType storage) {
  const auto align = [](std::vector<std::uint32_t>& words) {
    words.resize(static_cast<std::size_t>(round_up(static_cast<std::int64_t>(words.size()), kVectorWords)));
  };
  const std::uint32_t largest_delta = (1U << delta_words * kWordBits / kSteps) - 1;
  const auto outputs = static_cast<std::size_t>(op.out_features);
  std::vector<std::uint32_t> words(outputs + 1);
  align(words);
  for (const float bias : op.bias) words.push_back(std::bit_cast<std::uint32_t>(bias));
  align(words);
  for (std::size_t k = 0; k < outputs; ++k) {
    words[k] = static_cast<std::uint32_t>(words.size());
    append(words, shares_of(op, k, largest_delta), delta_words, storage);
  }
  words[outputs] = static_cast<std::uint32_t>(words.size());
  return words;
}

class LinearSparseProvider : public TemplateProvider {
 public:
  LinearSparseProvider() : TemplateProvider("linear_sparse") {}

 protected:
  std::vector<Candidate> search(const Task& task, const ProposeOptions&) const override {
    const Linear& op = *task.get<Linear>();
    constexpr int kWorthwhile = 8;  // below an eighth of zeros the distances alone take more
    const Linear stored = stored_linear(task);
    const auto zeros = std::ranges::count(stored.weights, 0.0F);
    if (zeros * kWorthwhile < static_cast<std::int64_t>(stored.weights.size())) return {};
    SparseChoices choices;
    choices.images = choose_images(op.in_features, task);
    share_out(choices, op, task);
    const auto words = [&](int delta) {
      return static_cast<std::int64_t>(pack_sparse_rows(stored, delta, task.linear_storage).size());
    };
    const std::int64_t narrow = words(1), wide = words(2);
    choices.delta_words = narrow <= wide ? 1 : 2;
    choices.weight_words = std::min(narrow, wide);
    return {candidate(task, plan_of(task, choices))};
  }
  std::vector<std::string> choices() const override { return {"images", "threads", "warp_rows"}; }
  double predict_us(const Task& task, const TemplatePlan& plan) const override {
    // A warp's 32 lanes look for their inputs all over shared memory, so that banks are asked several times over.
    constexpr double kGatherClocks = 0.18, kGatherClocksOfFour = 0.6;  // of a multiprocessor, for each nonzero
    constexpr double kDecodeUs = 0.1;  // the first distances are added up before anything is gathered
    const ArchSpec& arch = arch_of(task);
    const int images = plan.launch().tile_images;
    const double groups = static_cast<double>(ceil_div(task.batch, images));
    const double gathers = static_cast<double>(nonzeros_of(task)) * groups / arch.multiprocessors;
    const double weights = static_cast<double>(plan.weights().run_words) * kWordBytes;
    const double us = kDecodeUs + clocks_us(gathers * (images == 1 ? kGatherClocks : kGatherClocksOfFour), arch) +
                      clocks_us(weights / arch.device_bytes_per_clock, arch);
    return launch_time_us({.busy_us = us, .waits = 2}, arch);  // for its images, then for its first weights
  }
  bool can(const Task& task) const override {
    const Linear* op = task.get<Linear>();
    return op != nullptr && choose_images(op->in_features, task) > 0;
  }

  TemplatePlan plan_as(const Task& task, const TemplatePlan& chosen) const override {
    SparseChoices choices;
    choices.images = chosen.launch().tile_images;
    choices.warps = chosen.launch().threads / kWarpSize;
    choices.warp_rows = chosen.integers.at("warp_rows");
    choices.delta_words = chosen.integers.at("delta_words");
    choices.weight_words = chosen.weights().run_words;
    return plan_of(task, choices);
  }

  std::vector<std::uint32_t> pack(const Task& task, const TemplatePlan& plan) const override {
    std::vector<std::uint32_t> words =
        pack_sparse_rows(stored_linear(task), plan.integers.at("delta_words"), task.linear_storage);
    // How many there are follows from the weights: plan_as() believes the plan, which a person may have edited.
    if (static_cast<std::int64_t>(words.size()) != plan.weights().run_words) {
      fail(ErrorKind::bad_input,
           "operator '{}': the plan says that the weights take {} words, and they take {}: correct the line of its "
           "tensor 'weights'",
           task.name, plan.weights().run_words, words.size());
    }
    return words;
  }

 private:
  TemplatePlan plan_of(const Task& task, const SparseChoices& choices) const {
    const Linear& op = *task.get<Linear>();
    TemplatePlan plan = start(task);
    set_narrow(plan);
    LaunchGeometry& launch = plan.launch();
    launch.tile_images = choices.images;
    launch.shared_bytes = static_cast<int>(shared_bytes(op.in_features, choices.images));
    launch.threads = choices.warps * kWarpSize;
    launch.tiles_per_image = ceil_div(op.out_features, choices.warp_rows * choices.warps);
    set_integers(plan, {{"in_features", op.in_features},
                        {"out_features", op.out_features},
                        {"warp_rows", choices.warp_rows},
                        {"has_bias", !op.bias.empty()},
                        {"delta_words", choices.delta_words},
                        {"half_values", task.linear_storage != ElementType::f32}});
    set_function(plan, op.function);
    plan.weights().run_words = choices.weight_words;
    return plan;
  }
};

}  // namespace

const Provider& linear_sparse_provider() { return the_only<LinearSparseProvider>(); }

}  // namespace burin
