#include "compiler/host/block_schedule.h"

#include <numeric>

namespace burin {
namespace {

constexpr std::uint64_t kOrderSeed = 0x9E3779B97F4A7C15;

}  // namespace

BlockSchedule::BlockSchedule(const LaunchGeometry& launch, std::int64_t width, const ClusterExtent& cluster)
    : cluster_x_(static_cast<std::uint64_t>(cluster.x)),
      cluster_y_(static_cast<std::uint64_t>(cluster.y)),
      columns_(width / cluster.x),
      turns_(static_cast<std::uint64_t>(columns_ * (launch.slices / cluster.y))) {
  // One counter per output-channel group: the slices of a group are its splits, which lie side by side.
  if (cluster.y == 1 && launch.counters_per_tile > 0 && launch.slices % launch.counters_per_tile == 0) {
    splits_ = launch.slices / launch.counters_per_tile;
  }
  step_ = kOrderSeed % turns_;
  while (std::gcd(step_, turns_) != 1) step_ = step_ % turns_ + 1;
  first_ = kOrderSeed / 3 % turns_;
}

}  // namespace burin
