// A time after which nothing new is begun.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <limits>
#include <utility>

namespace burin {

class TimeBudget {
 public:
  // From now on. `seconds` 0: there is time for all. `clock` says what time it is, in seconds; empty: the system does.
  explicit TimeBudget(double seconds, std::function<double()> clock = {})
      : clock_(std::move(clock)), end_(seconds > 0 ? now() + seconds : std::numeric_limits<double>::infinity()) {}

  bool is_time_left() const { return now() < end_; }
  // Infinite where there is time for all, and never under 0.
  double seconds_left() const { return std::max(0.0, end_ - now()); }

 private:
  double now() const {
    if (clock_) return clock_();
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  }

  std::function<double()> clock_;
  double end_;
};

}  // namespace burin
