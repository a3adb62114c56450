// Loops over independent items on several cores.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace burin {

// Whether the thread is one of several that are at work already: then parallel_for() starts no others.
inline thread_local bool is_one_of_many = false;

// The processors of this machine. The system reads a file to count them.
inline int core_count() {
  static const int count = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  return count;
}

// work(i) for each i of 0..count, in any order, on `threads` threads; 0: as many as there are processors. The first
// exception stops the rest and is thrown again.
template <typename Work>
void for_each_parallel(std::size_t count, int threads, const Work& work) {
  std::atomic<std::size_t> next{0};
  std::exception_ptr fault;
  std::mutex fault_mutex;
  const auto worker = [&] {
    for (std::size_t i = next++; i < count; i = next++) {
      try {
        work(i);
      } catch (...) {
        const std::lock_guard lock(fault_mutex);
        if (!fault) fault = std::current_exception();
        next = count;
      }
    }
  };
  {
    const std::size_t wanted = static_cast<std::size_t>(threads > 0 ? threads : core_count());
    std::vector<std::jthread> pool;
    for (std::size_t i = 1; i < std::min(wanted, count); ++i) pool.emplace_back(worker);
    worker();
  }
  if (fault) std::rethrow_exception(fault);
}

// The same; `operations` of all items together: few are done on one thread, and so are those of a thread that
// is_one_of_many.
template <typename Work>
void parallel_for(int count, double operations, const Work& work) {
  constexpr double kOperationsPerThread = 1e6;  // below this, starting a thread costs more than it saves
  const int cores = is_one_of_many ? 1 : core_count();
  const int threads = std::min(cores, static_cast<int>(std::min(1e3, operations / kOperationsPerThread)) + 1);
  for_each_parallel(static_cast<std::size_t>(count), threads, [&](std::size_t i) { work(static_cast<int>(i)); });
}

}  // namespace burin
