// A loop over independent items on all cores, for the references.
#pragma once

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

namespace burin {

// work(i) for each i of 0..count, in any order. `operations` of all items together: few are done on one thread.
// `work` must not throw.
template <typename Work>
void parallel_for(int count, double operations, const Work& work) {
  constexpr double kOperationsPerThread = 1e6;  // below this, starting a thread costs more than it saves
  const int cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  const int jobs = std::min({cores, count, static_cast<int>(std::min(1e3, operations / kOperationsPerThread)) + 1});
  std::atomic<int> next{0};
  const auto take = [&] {
    for (int i = next++; i < count; i = next++) work(i);
  };
  std::vector<std::jthread> threads;  // joined at the end
  for (int job = 1; job < jobs; ++job) threads.emplace_back(take);
  take();
}

}  // namespace burin
