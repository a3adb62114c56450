#include "compiler/host/block_runner.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <limits>
#include <mutex>
#include <thread>
#include <utility>

#include "ir/limits.h"

namespace burin {
namespace {

// GPU threads at once. Each has a stack and a page that guards it; a process may have some 65 thousand such pieces of
// memory.
constexpr int kMaxFibers = 16 * kMaxThreadsPerBlock;

// The first fault in the order of the blocks, whichever CPU thread meets it.
class FirstFault {
 public:
  bool before(std::uint64_t position) const { return first_.load(std::memory_order_relaxed) < position; }
  void offer(std::uint64_t position, std::string text) {
    const std::lock_guard lock(mutex_);
    if (position >= first_) return;
    first_ = position;
    text_ = std::move(text);
  }
  const std::optional<std::string>& text() const { return text_; }

 private:
  std::mutex mutex_;
  std::atomic<std::uint64_t> first_ = std::numeric_limits<std::uint64_t>::max();
  std::optional<std::string> text_;
};

}  // namespace

std::optional<std::string> BlockRunner::run(const Launch& launch, const BlockSchedule& schedule, std::int64_t pass,
                                            int phase) {
  const auto most = static_cast<std::uint64_t>(kMaxFibers / (threads_ * code_.cluster().blocks()));
  const unsigned cores = cores_ > 0 ? static_cast<unsigned>(cores_) : std::thread::hardware_concurrency();
  const std::uint64_t wanted = std::clamp<std::uint64_t>(cores, 1, most);
  const auto count = static_cast<std::size_t>(std::min(wanted, schedule.turns()));
  while (workers_.size() < count) {
    workers_.push_back(std::make_unique<Cluster>(code_.cluster(), threads_, shared_bytes_, code_.stack_bytes()));
  }
  FirstFault fault;
  std::atomic<std::uint64_t> next = 0;
  // Positions are taken in order, so when one has a fault, all before it have been taken and will be finished.
  const auto work = [&](Cluster& worker) {
    for (std::uint64_t position = next++; position < schedule.turns() && !fault.before(position); position = next++) {
      const auto block = schedule.block(pass, phase, position);
      if (!block) continue;
      if (auto text = worker.run(launch, *block)) fault.offer(position, std::move(*text));
    }
  };
  std::vector<std::jthread> threads;
  for (std::size_t i = 1; i < count; ++i) threads.emplace_back(work, std::ref(*workers_[i]));
  work(*workers_.front());
  threads.clear();  // waits for them
  return fault.text();
}

}  // namespace burin
