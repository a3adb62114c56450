#include "ir/baked_plan_cluster.h"

#include <fmt/format.h>

#include "ir/limits.h"
#include "ir/saturate.h"

namespace burin {
namespace {

void check_splits(const BakedPlan& plan, std::vector<std::string>& faults) {
  const int needed = plan.reduction == Reduction::cluster ? plan.splits : 1;
  if (plan.cluster.splits == needed) return;
  faults.push_back(fmt::format("cluster is {}, with reduction {} and {} split{} it must hold {} of them: {}",
                               to_string(plan.cluster), to_string(plan.reduction), plan.splits,
                               plan.splits == 1 ? "" : "s", needed,
                               needed > 1 ? "they read each other's shared memory" : "none needs another at its side"));
}

}  // namespace

std::vector<std::string> cluster_faults(const BakedPlan& plan) {
  const ClusterShape& cluster = plan.cluster;
  std::vector<std::string> faults;
  if (cluster.tiles < 1 || cluster.splits < 1) {
    return {fmt::format("cluster is {}, it must be at least 1x1: one block", to_string(cluster))};
  }
  if (saturating_product({cluster.tiles, cluster.splits}) > kMaxClusterBlocks) {
    faults.push_back(
        fmt::format("cluster is {}, allowed are {} blocks (kMaxClusterBlocks): more may find no place together",
                    to_string(cluster), kMaxClusterBlocks));
  }
  check_splits(plan, faults);
  return faults;
}

}  // namespace burin
