#include "ir/activation_zeros.h"

#include <algorithm>
#include <cmath>

#include "ir/error.h"

namespace burin {

double ActivationZeros::dead_runs(int length) const {
  if (length >= kRuns.back()) return dead.back();
  std::size_t above = 0;
  while (kRuns[above] < length) ++above;
  if (kRuns[above] == length) return dead[above];
  const double part = std::log2(static_cast<double>(length) / kRuns[above - 1]);
  return dead[above - 1] + part * (dead[above] - dead[above - 1]);
}

double ActivationZeros::dead_patches(std::int64_t values, std::int64_t plane) const {
  constexpr int kLongest = kRuns.back();
  if (values >= plane) return dead_channels;
  if (values <= kLongest) return dead_runs(static_cast<int>(values));
  const double part =
      std::log(static_cast<double>(values) / kLongest) / std::log(static_cast<double>(plane) / kLongest);
  return dead.back() + part * (dead_channels - dead.back());
}

ActivationZeros ActivationZeros::with_share(double share) const {
  ActivationZeros zeros;
  const bool is_known = dead.front() > 0 && dead.front() < 1;
  for (std::size_t i = 0; i < dead.size(); ++i) {
    // Of single values that many would have to be zero by themselves for a run to be; of random ones all of them.
    const double values = is_known && dead[i] > 0 ? std::log(dead[i]) / std::log(dead.front()) : kRuns[i];
    zeros.dead[i] = std::pow(share, values);
  }
  // Channels of which none was seen to be dead have none until there is nothing else.
  const bool some = is_known && dead_channels > 0;
  zeros.dead_channels = some ? std::pow(share, std::log(dead_channels) / std::log(dead.front())) : share >= 1;
  return zeros;
}

void ZeroCounter::add(std::span<const double> values, std::int64_t plane) { count(values, plane); }
void ZeroCounter::add(std::span<const float> values, std::int64_t plane) { count(values, plane); }

template <typename Value>
void ZeroCounter::count(std::span<const Value> values, std::int64_t plane) {
  const auto size = static_cast<std::size_t>(plane);
  BURIN_CHECK(size > 0 && values.size() % size == 0, "{} values are no planes of {}", values.size(), plane);
  for (std::size_t first = 0; first < values.size(); first += size) {
    const std::span<const Value> all = values.subspan(first, size);
    ++channels_;
    dead_channels_ += std::ranges::all_of(all, [](Value value) { return value == 0; });
    for (std::size_t i = 0; i < runs_.size(); ++i) {
      const auto length = static_cast<std::size_t>(ActivationZeros::kRuns[i]);
      for (std::size_t begin = 0; begin < size; begin += length) {
        const std::span<const Value> run = all.subspan(begin, std::min(length, size - begin));
        ++runs_[i];
        dead_[i] += std::ranges::all_of(run, [](Value value) { return value == 0; });
      }
    }
  }
}

ActivationZeros ZeroCounter::zeros() const {
  BURIN_CHECK(runs_.front() > 0, "zeros of nothing");
  ActivationZeros zeros;
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    zeros.dead[i] = static_cast<double>(dead_[i]) / static_cast<double>(runs_[i]);
  }
  zeros.dead_channels = static_cast<double>(dead_channels_) / static_cast<double>(channels_);
  return zeros;
}

}  // namespace burin
