// Zeros of a feature map: how many there are, and how they lie together.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace burin {

// The share of runs that are zero all through, in one feature map or in many. A run is a row of neighbours in the order
// of a channel's plane; the next one begins where it ends, and the last one of a plane may be shorter. A kernel that
// looks at so many pixels at once skips that share. A channel of an image that is zero all through is dead.
struct ActivationZeros {
  static constexpr std::array<int, 4> kRuns = {1, 2, 4, 8};
  std::array<double, kRuns.size()> dead = {};
  double dead_channels = 0;

  double share() const { return dead.front(); }
  // The share for runs of any length: it lies between the nearest two that are known, or is that of the longest.
  double dead_runs(int length) const;
  // The share for patches of so many values of a plane, neighbours in both directions.
  double dead_patches(std::int64_t values, std::int64_t plane) const;
  // Another share of zeros that lie together as these do.
  ActivationZeros with_share(double share) const;
  bool operator==(const ActivationZeros&) const = default;
};

class ZeroCounter {
 public:
  // Planes of so many values, one behind the other.
  void add(std::span<const double> values, std::int64_t plane);
  void add(std::span<const float> values, std::int64_t plane);
  // The shares in all that was added, which must be something.
  ActivationZeros zeros() const;

 private:
  template <typename Value>
  void count(std::span<const Value> values, std::int64_t plane);

  std::array<std::int64_t, ActivationZeros::kRuns.size()> runs_ = {}, dead_ = {};
  std::int64_t channels_ = 0, dead_channels_ = 0;
};

}  // namespace burin
