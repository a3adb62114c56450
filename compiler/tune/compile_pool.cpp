#include "compiler/tune/compile_pool.h"

#include <algorithm>

#include "ir/parallel_for.h"

namespace burin {
namespace {

constexpr std::size_t kReadyPerThread = 4;

}  // namespace

int compile_threads(int jobs) {
  const int wanted = jobs > 0 ? jobs : core_count();
  return std::max(1, wanted - 1);
}

CompilePool::CompilePool(int threads) : most_ready_(kReadyPerThread * static_cast<std::size_t>(threads)) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
}

CompilePool::~CompilePool() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
  threads_.clear();  // joins
}

void CompilePool::add(Key key, std::function<Package()> compile) {
  {
    const std::lock_guard lock(mutex_);
    waiting_.emplace(key, std::move(compile));
  }
  changed_.notify_all();
}

CompilePool::Result CompilePool::next() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return failure_ || !ready_.empty(); });
  if (failure_) std::rethrow_exception(failure_);
  Result result = std::move(ready_.front());
  ready_.pop();
  lock.unlock();
  changed_.notify_all();
  return result;
}

void CompilePool::work() {
  is_one_of_many = true;
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopped_ || (!waiting_.empty() && ready_.size() < most_ready_); });
    if (stopped_) return;
    auto entry = waiting_.extract(waiting_.begin());
    lock.unlock();
    Result result{.key = entry.key(), .package = {}, .fault = {}};
    std::exception_ptr failure;
    try {
      result.package = entry.mapped()();
    } catch (const Error& error) {
      result.fault = error;
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    if (failure) {
      failure_ = failure;
    } else {
      ready_.push(std::move(result));
    }
    changed_.notify_all();
  }
}

}  // namespace burin
