#include "compiler/host/block_schedule.h"

#include <numeric>

namespace burin {
namespace {

constexpr std::uint64_t kOrderSeed = 0x9E3779B97F4A7C15;

}  // namespace

BlockSchedule::BlockSchedule(const LaunchGeometry& launch, std::int64_t tiles)
    : tiles_(tiles), blocks_(static_cast<std::uint64_t>(tiles * launch.slices)) {
  // One counter per output-channel group: the slices of a group are its splits, which lie side by side.
  if (launch.counters_per_tile > 0 && launch.slices % launch.counters_per_tile == 0) {
    splits_ = launch.slices / launch.counters_per_tile;
  }
  step_ = kOrderSeed % blocks_;
  while (std::gcd(step_, blocks_) != 1) step_ = step_ % blocks_ + 1;
  first_ = kOrderSeed / 3 % blocks_;
}

}  // namespace burin
