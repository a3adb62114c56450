// A time after which nothing new is begun.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <limits>
#include <utility>

namespace burin {

// How much of tuning's budget has passed when no other network is timed to choose its graph, when no other kernel is
// measured, and when no other one is tried in the network. What is left is for compiling what is packed.
inline constexpr double kShareOfGraphs = 0.25, kShareOfLayers = 0.75, kShareUntilPacked = 0.95;

class TimeBudget {
 public:
  // There is time for all.
  TimeBudget() = default;
  // From now on. `seconds` 0: there is time for all. `clock` says what time it is, in seconds; empty: the system does.
  explicit TimeBudget(double seconds, std::function<double()> clock = {})
      : clock_(std::move(clock)), begin_(now()), end_(seconds > 0 ? begin_ + seconds : kNever) {}

  bool is_time_left() const { return now() < end_; }
  // Infinite where there is time for all, and never under 0.
  double seconds_left() const { return std::max(0.0, end_ - now()); }
  double seconds_passed() const { return now() - begin_; }
  // All of it; infinite where there is time for all.
  double seconds() const { return end_ - begin_; }

  // This much of it, from its beginning on.
  TimeBudget first(double share) const {
    TimeBudget part = *this;
    part.end_ = begin_ + share * seconds();
    return part;
  }
  // What is left, but no more than so many seconds.
  TimeBudget next(double seconds) const {
    TimeBudget part = *this;
    part.begin_ = now();
    part.end_ = std::min(end_, part.begin_ + seconds);
    return part;
  }

 private:
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  double now() const {
    if (clock_) return clock_();
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  }

  std::function<double()> clock_;
  double begin_ = 0, end_ = kNever;
};

}  // namespace burin
