// A handful out of many plans: good ones by the model, and unlike each other, because the model errs alike on plans
// that are alike. For tuning, which measures each.
#pragma once

#include <cstddef>
#include <vector>

#include "ir/baked_plan.h"

namespace burin {

// What tells plans apart. Everything else (stages, buffers, barriers, loads ahead) is detail.
struct PlanTraits {
  Staging staging = Staging::shared;
  Reduction reduction = Reduction::none;
  int threads = 0, groups = 1, splits = 1;
  ClusterShape cluster = {};
  bool operator==(const PlanTraits&) const = default;
};

PlanTraits traits_of(const BakedPlan& plan);

// Same kind, and the same clusters, and nearly the same number of threads, groups and splits.
bool alike(const PlanTraits& a, const PlanTraits& b);

// Indices of up to `count` of `best_first`, ascending: the first; the best of each kind (staging, reduction), as far as
// half of the places suffice; then the best that are unlike all those taken; where places are left, the best of the
// rest. At most two have the same traits.
std::vector<std::size_t> pick_unlike(const std::vector<PlanTraits>& best_first, std::size_t count);

}  // namespace burin
