#include "ir/kernel_plan_cluster.h"

#include <fmt/format.h>

#include "ir/limits.h"
#include "ir/saturate.h"

namespace burin {
namespace {

void check_splits(const KernelPlan& plan, std::vector<std::string>& faults) {
  const int needed = plan.reduction == Reduction::cluster ? plan.splits : 1;
  if (plan.cluster.splits == needed) return;
  faults.push_back(fmt::format("cluster is {}, with reduction {} and {} split{} it must hold {} of them: {}",
                               to_string(plan.cluster), to_string(plan.reduction), plan.splits,
                               plan.splits == 1 ? "" : "s", needed,
                               needed > 1 ? "they read each other's shared memory" : "none needs another at its side"));
}

// Blocks that share copies.
void check_groups(const KernelPlan& plan, std::vector<std::string>& faults) {
  const ClusterShape& cluster = plan.cluster;
  if (cluster.groups == 1) return;
  const auto add = [&](std::string fault) {
    faults.push_back(fmt::format("cluster is {}, {}", to_string(cluster), std::move(fault)));
  };
  if (plan.staging != Staging::bulk) {
    add(fmt::format("but staging is {}: several groups in a cluster share bulk copies, others cannot be shared",
                    to_string(plan.staging)));
  }
  if (plan.reduction == Reduction::last_block) {
    add("but reduction is last_block: the blocks of a cluster are neighbours, and between those of two groups lie "
        "their splits");
  }
  if (plan.buffers > kMaxSharedBuffers) {
    add(fmt::format("but buffers is {}, with shared copies at most {} (kMaxSharedBuffers): each has two gates",
                    plan.buffers, kMaxSharedBuffers));
  }
  const auto groups = static_cast<int>(plan.groups.size());
  if (groups % cluster.groups != 0) {
    add(fmt::format("but there are {} groups: they must make whole clusters", groups));
    return;
  }
  for (int g = 0; g < groups; ++g) {
    const int first = g / cluster.groups * cluster.groups;
    for (int split = 0; split < plan.splits; ++split) {
      const auto slice = [&](int group) {
        return static_cast<std::size_t>(group) * static_cast<std::size_t>(plan.splits) +
               static_cast<std::size_t>(split);
      };
      if (plan.slices[slice(g)].channels == plan.slices[slice(first)].channels) continue;
      add(fmt::format("but slices {} {} and {} {} read different channels: what one block copies all must need", first,
                      split, g, split));
      return;
    }
  }
}

}  // namespace

std::vector<std::string> cluster_faults(const KernelPlan& plan) {
  const ClusterShape& cluster = plan.cluster;
  std::vector<std::string> faults;
  if (cluster.tiles < 1 || cluster.groups < 1 || cluster.splits < 1) {
    return {fmt::format("cluster is {}, it must be at least 1x1x1: one block", to_string(cluster))};
  }
  if (saturating_product({cluster.tiles, cluster.groups, cluster.splits}) > kMaxClusterBlocks) {
    faults.push_back(
        fmt::format("cluster is {}, allowed are {} blocks (kMaxClusterBlocks): more may find no place together",
                    to_string(cluster), kMaxClusterBlocks));
  }
  check_splits(plan, faults);
  check_groups(plan, faults);
  return faults;
}

}  // namespace burin
