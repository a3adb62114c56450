#include "compiler/providers/conv_baked/plan/unlike_plans.h"

#include <algorithm>

namespace burin {
namespace {

constexpr double kNearly = 1.2;  // a fifth more threads or groups behaves the same
constexpr int kMostSameTraits = 2;

bool near(int a, int b) { return std::max(a, b) <= kNearly * std::min(a, b); }

bool same_kind(const PlanTraits& a, const PlanTraits& b) {
  return a.staging == b.staging && a.reduction == b.reduction;
}

}  // namespace

PlanTraits traits_of(const BakedPlan& plan) {
  return {plan.staging, plan.reduction, plan.threads, static_cast<int>(plan.groups.size()), plan.splits, plan.cluster};
}

bool alike(const PlanTraits& a, const PlanTraits& b) {
  return same_kind(a, b) && a.cluster.tiles == b.cluster.tiles && near(a.threads, b.threads) &&
         near(a.groups, b.groups) && near(a.splits, b.splits);
}

std::vector<std::size_t> pick_unlike(const std::vector<PlanTraits>& best_first, std::size_t count) {
  std::vector<std::size_t> taken;
  const auto take_where = [&](std::size_t places, auto&& wanted) {
    for (std::size_t i = 0; i < best_first.size() && taken.size() < places; ++i) {
      if (std::find(taken.begin(), taken.end(), i) == taken.end() && wanted(best_first[i])) taken.push_back(i);
    }
  };
  const auto unlike_all = [&](auto&& like) {
    return [&taken, &best_first, like](const PlanTraits& traits) {
      return std::none_of(taken.begin(), taken.end(), [&](std::size_t i) { return like(best_first[i], traits); });
    };
  };
  const auto has_room = [&](const PlanTraits& traits) {
    return std::count_if(taken.begin(), taken.end(), [&](std::size_t i) { return best_first[i] == traits; }) <
           kMostSameTraits;
  };
  take_where((count + 1) / 2, unlike_all(same_kind));
  take_where(count, unlike_all(alike));
  take_where(count, has_room);
  std::sort(taken.begin(), taken.end());
  return taken;
}

}  // namespace burin
