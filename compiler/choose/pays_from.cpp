#include "compiler/choose/pays_from.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "compiler/providers/provider.h"
#include "ir/error.h"

namespace burin {
namespace {

// The least time with such a share of zeros that kernels of those providers take which have some that skip them.
double skipping_us(Task task, double share) {
  task.zeros = task.zeros->with_share(share);
  double least = std::numeric_limits<double>::infinity();
  for (const Provider* provider : providers()) {
    const bool may_skip = provider->needs_zeros() || provider->uses_zeros();
    if (!may_skip || !provider->can_do(task)) continue;
    for (const Candidate& candidate : provider->propose(task, {})) least = std::min(least, candidate.estimate.us);
  }
  return least;
}

// The least time of a provider's kernels that skip nothing.
double without_zeros_us(const Provider& provider, Task task) {
  task.zeros.reset();
  const std::vector<Candidate> made = provider.propose(task, {});
  return made.empty() ? std::numeric_limits<double>::infinity() : made.front().estimate.us;
}

}  // namespace

InputZeros skipping_pays_from(const Task& task, const std::vector<KernelOption>& compared) {
  BURIN_CHECK(task.zeros.has_value(), "zeros of {} are not known", task.name);
  InputZeros result{.share = task.zeros->share()};
  double others = std::numeric_limits<double>::infinity();
  for (const KernelOption& option : compared) {
    const Provider* provider = find_provider(option.provider);
    if (provider == nullptr || provider->needs_zeros()) continue;
    if (option.measured) return result;
    others = std::min(others, provider->uses_zeros() ? without_zeros_us(*provider, task) : option.us);
  }
  result.compared = std::isfinite(others);
  if (!result.compared || skipping_us(task, 1) >= others) return result;
  double never = 0, always = 1;
  if (skipping_us(task, never) < others) always = never;
  constexpr double kPrecision = 0.01;
  while (always - never > kPrecision) {
    const double middle = (never + always) / 2;
    (skipping_us(task, middle) < others ? always : never) = middle;
  }
  result.pays_from = always;
  return result;
}

}  // namespace burin
