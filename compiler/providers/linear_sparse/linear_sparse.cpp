// Fully connected, sparse: values and distances are streamed. How outputs, images and threads are shared out.
#include <algorithm>
#include <utility>

#include "compiler/providers/linear/linear_weights.h"
#include "compiler/providers/linear_sparse/sparse_rows.h"
#include "compiler/providers/template_provider.h"
#include "ir/error.h"
#include "ir/kernel.h"
#include "ir/saturate.h"
// clang-format off
#include "compiler/providers/template_constants.h"
// clang-format on

namespace burin {
namespace {

const std::vector<TemplateConstant> kLinearSparseConstants = {
#include "compiler/providers/linear_sparse/linear_sparse.def"
};

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

class LinearSparseProvider : public TemplateProvider {
 public:
  LinearSparseProvider()
      : TemplateProvider("linear_sparse", "fully connected, sparse: values and distances are streamed",
                         kLinearSparseConstants) {}

 protected:
  std::vector<Candidate> search(const Task& task, const ProposeOptions& options) const override {
    const Linear& op = *task.get<Linear>();
    constexpr int kWorthwhile = 8;  // below an eighth of zeros the distances alone take more
    const Linear stored = stored_weights(op, task);
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
    const TemplatePlan plan = plan_of(task, choices);
    if (predict_us(task, plan) >= options.worthwhile_us) return {};
    return {candidate(task, plan)};
  }
  std::vector<std::string> choices() const override { return {"images", "threads", "warp_rows"}; }
  double predict_us(const Task& task, const TemplatePlan& plan) const override {
    // A warp's 32 lanes look for their inputs all over shared memory, so that banks are asked several times over.
    constexpr double kGatherClocks = 0.11, kGatherClocksOfFour = 0.56;  // of a multiprocessor, for each nonzero
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
    std::vector<std::uint32_t> words = pack_sparse_rows(stored_weights(*task.get<Linear>(), task),
                                                        plan.integers.at("delta_words"), task.linear_storage);
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
    set_function(plan, op.activation, op.leaky_slope);
    plan.weights().run_words = choices.weight_words;
    return plan;
  }
};

}  // namespace

const Provider& linear_sparse_provider() {
  static const LinearSparseProvider provider;
  return provider;
}

}  // namespace burin
