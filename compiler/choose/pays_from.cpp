#include "compiler/choose/pays_from.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "compiler/choose/choose.h"
#include "compiler/providers/provider.h"
#include "ir/error.h"

namespace burin {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// The least time of a provider's kernels that skip nothing.
double without_zeros_us(const Provider& provider, Task task) {
  task.zeros.reset();
  const std::vector<Candidate> made = provider.propose(task, {});
  return made.empty() ? kNever : made.front().estimate.us;
}

// Who has kernels for the task that skip zeros, and what others of the same provider take: its best one skips zeros
// where it takes less.
struct Skipper {
  const Provider* provider;
  double others_us;
};
std::vector<Skipper> skippers_of(const Task& task) {
  std::vector<Skipper> skippers;
  for (const Provider* provider : providers()) {
    if (!(provider->needs_zeros() || provider->uses_zeros()) || !provider->can_do(task)) continue;
    skippers.push_back({provider, provider->needs_zeros() ? kNever : without_zeros_us(*provider, task)});
  }
  return skippers;
}

// The least time that a kernel which skips zeros would take with such a share of them.
double skipping_us(const std::vector<Skipper>& skippers, Task task, double share) {
  task.zeros = task.zeros->with_share(share);
  double least = kNever;
  for (const Skipper& skipper : skippers) {
    for (const Candidate& best : skipper.provider->propose(task, {})) {
      if (best.estimate.us < skipper.others_us) least = std::min(least, best.estimate.us);
    }
  }
  return least;
}

// A task with other weights than the one that it was made of, which must outlive it.
class ReweightedTask {
 public:
  ReweightedTask(const Task& task, std::vector<float> weights) : task_(task) {
    if (task.layer != nullptr) {
      layer_ = *task.layer;
      layer_.weights = std::move(weights);
      task_.layer = &layer_;
    } else {
      op_ = *task.op;
      std::get<Linear>(op_.kind).weights = std::move(weights);
      task_.op = &op_;
    }
  }
  ReweightedTask(const ReweightedTask&) = delete;
  ReweightedTask& operator=(const ReweightedTask&) = delete;

  const Task& task() const { return task_; }

 private:
  ConvLayer layer_;
  Operator op_;
  Task task_;
};

// Those of a convolution or fully connected layer; null: the task has none.
const std::vector<float>* weights_of(const Task& task) {
  if (task.layer != nullptr) return &task.layer->weights;
  const Linear* linear = task.get<Linear>();
  return linear == nullptr ? nullptr : &linear->weights;
}

// A hash of the weight's number, of which any two differ.
std::uint64_t draw_of(std::uint64_t weight, std::uint64_t seed) {
  std::uint64_t mixed = weight + seed * 0x9e3779b97f4a7c15;  // splitmix64
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
  return mixed ^ (mixed >> 31);
}

}  // namespace

std::optional<double> least_paying_share(const std::function<bool(double share)>& pays, std::optional<double> own) {
  std::optional<double> never, always;  // as far as it was asked for
  if (own) (pays(*own) ? always : never) = *own;
  if (!always && !pays(1)) return std::nullopt;
  if (!always) always = 1;
  while (*always - never.value_or(0) > kShareStep) {
    const double middle = (never.value_or(0) + *always) / 2;
    (pays(middle) ? always : never) = middle;
  }
  return !never && pays(0) ? 0 : *always;
}

InputZeros skipping_pays_from(const Task& task, const std::vector<KernelOption>& compared) {
  BURIN_CHECK(task.zeros.has_value(), "zeros of {} are not known", task.name);
  InputZeros result{.share = task.zeros->share()};
  double others = kNever;
  for (const KernelOption& option : compared) {
    const Provider* provider = find_provider(option.provider);
    if (provider == nullptr || provider->needs_zeros()) continue;
    if (option.measured) return result;
    others = std::min(others, provider->uses_zeros() ? without_zeros_us(*provider, task) : option.us);
  }
  result.compared = std::isfinite(others);
  if (!result.compared) return result;
  const std::vector<Skipper> skippers = skippers_of(task);
  result.pays_from = least_paying_share([&](double share) { return skipping_us(skippers, task, share) < others; });
  return result;
}

std::vector<float> with_zero_share(std::vector<float> weights, double share, std::uint64_t seed) {
  const auto wanted = std::llround(share * static_cast<double>(weights.size()));
  const auto zeros = static_cast<std::int64_t>(std::ranges::count(weights, 0.0F));
  const bool adds_zeros = wanted > zeros;
  std::vector<std::uint32_t> may_change;  // kMaxLayerWeights are fewer
  float largest = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    largest = std::max(largest, std::abs(weights[i]));
    if ((weights[i] != 0) == adds_zeros) may_change.push_back(static_cast<std::uint32_t>(i));
  }
  const auto end = may_change.begin() + std::abs(wanted - zeros);
  if (end != may_change.end()) {
    std::ranges::nth_element(may_change, end, {}, [&](std::uint32_t i) { return draw_of(i, seed); });
  }
  const float added = largest > 0 ? largest : 1;
  std::for_each(may_change.begin(), end, [&](std::uint32_t i) { weights[i] = adds_zeros ? 0 : added; });
  return weights;
}

std::optional<WeightZeros> zero_weights_pay_from(const Task& task, const CompileOptions& options) {
  const std::vector<float>* weights = weights_of(task);
  if (weights == nullptr) return std::nullopt;
  std::vector<const Provider*> dense, sparse;
  for (const Provider* provider : compared_by_models(task, options)) {
    // Kernels that skip zeros of the input multiply all weights, and what they take hangs on the input.
    if (provider->needs_zeros() || !provider->can_do(task)) continue;
    (provider->is_dense() ? dense : sparse).push_back(provider);
  }
  if (dense.empty() || sparse.empty()) return std::nullopt;
  const double dense_us = least_estimate_us(task, options, dense);
  if (!std::isfinite(dense_us)) return std::nullopt;
  constexpr std::uint64_t kSeed = 1;
  const auto pays = [&](double share) {
    const ReweightedTask other(task, with_zero_share(*weights, share, kSeed));
    return least_estimate_us(other.task(), options, sparse) < dense_us;
  };
  const auto zeros = static_cast<double>(std::ranges::count(*weights, 0.0F));
  return WeightZeros{task.batch, least_paying_share(pays, zeros / static_cast<double>(weights->size()))};
}

}  // namespace burin
