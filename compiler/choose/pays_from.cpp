#include "compiler/choose/pays_from.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

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

}  // namespace

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
  const auto pays = [&](double share) { return skipping_us(skippers, task, share) < others; };
  double never = 0, always = 1;
  if (!pays(always)) return result;
  if (pays(never)) always = never;
  constexpr double kPrecision = 0.01;
  while (always - never > kPrecision) {
    const double middle = (never + always) / 2;
    (pays(middle) ? always : never) = middle;
  }
  result.pays_from = always;
  return result;
}

}  // namespace burin
