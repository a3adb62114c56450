#include "compiler/providers/conv_baked/plan/neighbours.h"

#include <algorithm>

#include "ir/arch.h"
#include "ir/baked_plan.h"
#include "ir/limits.h"

namespace burin {
namespace {

constexpr double kGroupStep = 1.1;

// The nearest numbers of groups that are at least a tenth away from `groups`.
std::vector<int> group_steps(int groups, const std::vector<GroupOption>& options) {
  int fewer = 0, more = 0;
  for (const GroupOption& option : options) {
    if (option.groups * kGroupStep <= groups) fewer = std::max(fewer, option.groups);
    if (option.groups >= groups * kGroupStep) more = more == 0 ? option.groups : std::min(more, option.groups);
  }
  std::vector<int> steps;
  for (const int step : {fewer, more}) {
    if (step > 0) steps.push_back(step);
  }
  return steps;
}

// Twice or half as many tiles in a cluster.
std::vector<ClusterShape> cluster_steps(const BakedPlan& plan) {
  std::vector<ClusterShape> steps;
  if (!arch_by_name(plan.arch).clusters) return steps;
  for (const int tiles : {plan.cluster.tiles * 2, plan.cluster.tiles / 2}) {
    const ClusterShape shape{tiles, plan.cluster.splits};
    if (tiles >= 1 && shape.blocks() <= kMaxClusterBlocks) steps.push_back(shape);
  }
  return steps;
}

}  // namespace

std::vector<PlanConstraints> neighbours_of(const BakedPlan& plan, const PlanConstraints& fixed,
                                           const std::vector<GroupOption>& options) {
  const PlanConstraints here = constraints_of(plan);
  std::vector<PlanConstraints> found;
  using Choice = std::optional<int> PlanConstraints::*;
  const auto step = [&](Choice choice, int value) {
    if (fixed.*choice || value < 1 || here.*choice == value) return;
    PlanConstraints changed = here;
    changed.*choice = value;
    if (choice == &PlanConstraints::splits || choice == &PlanConstraints::groups) {
      // Slices read other channels then: what a stage holds is to be chosen anew.
      changed.stage_channels = fixed.stage_channels;
      changed.buffers = fixed.buffers;
      changed.cluster = fixed.cluster;
      if (changed.splits == 1) changed.reduction = fixed.reduction;
    }
    if (choice == &PlanConstraints::stage_channels) changed.buffers = fixed.buffers;
    found.push_back(changed);
  };
  step(&PlanConstraints::splits, plan.splits + 1);
  step(&PlanConstraints::splits, plan.splits - 1);
  for (const Reduction reduction : {Reduction::cluster, Reduction::last_block}) {
    if (plan.splits == 1 || fixed.reduction || plan.reduction == reduction) continue;
    found.push_back(here);
    found.back().reduction = reduction;
    found.back().cluster = fixed.cluster;
  }
  for (const int groups : group_steps(static_cast<int>(plan.groups.size()), options)) {
    step(&PlanConstraints::groups, groups);
  }
  if (here.stage_channels) {
    step(&PlanConstraints::stage_channels, plan.stage_channels * 2);
    step(&PlanConstraints::stage_channels, plan.stage_channels / 2);
    step(&PlanConstraints::buffers, plan.buffers + 1);
    step(&PlanConstraints::buffers, plan.buffers - 1);
  }
  step(&PlanConstraints::load_ahead, std::min(plan.load_ahead * 2, kMaxLoadAhead));
  step(&PlanConstraints::load_ahead, plan.load_ahead / 2);
  if (plan.staging == Staging::direct && !plan.skips) {
    step(&PlanConstraints::load_together, plan.load_together > 1 ? 1 : plan.load_ahead / 2);
  }
  if (plan.barrier_every > 0) {
    step(&PlanConstraints::barrier_every, plan.barrier_every * 2);
    step(&PlanConstraints::barrier_every, plan.barrier_every / 2);
  }
  for (const ClusterShape& cluster : cluster_steps(plan)) {
    if (fixed.cluster) break;
    found.push_back(here);
    found.back().cluster = cluster;
  }
  return found;
}

}  // namespace burin
