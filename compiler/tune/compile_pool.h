// Plans and compiles candidates on several threads while the caller measures others.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <queue>
#include <thread>
#include <utility>
#include <vector>

#include "ir/error.h"
#include "ir/package/package.h"

namespace burin {

// One thread fewer than processors: a processor is left to the thread that measures. `jobs` 0: there are as many as the
// machine has.
int compile_threads(int jobs);

class CompilePool {
 public:
  // Which kernel, and what is done for it. The lowest goes first, so that few kernels are in work at once.
  using Key = std::pair<std::size_t, std::size_t>;
  struct Result {
    Key key;
    Package package;
    std::optional<Error> fault;  // instead of a package
  };

  explicit CompilePool(int threads);
  ~CompilePool();  // what is being compiled is finished, the rest is dropped
  CompilePool(const CompilePool&) = delete;
  CompilePool& operator=(const CompilePool&) = delete;

  void add(Key key, std::function<Package()> compile);
  // The next that is ready; waits. As many calls as add()s, at most. Throws what `compile` threw when that is no Error.
  Result next();

 private:
  void work();

  const std::size_t most_ready_;  // packages that wait for the caller take memory: the threads pause
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<Key, std::function<Package()>> waiting_;
  std::queue<Result> ready_;
  std::exception_ptr failure_;
  bool stopped_ = false;
  std::vector<std::jthread> threads_;
};

}  // namespace burin
