#include "compiler/make_kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <mutex>
#include <numeric>

#include "compiler/kernel_cache.h"
#include "compiler/make_kernel.h"
#include "compiler/parallel_for.h"

namespace burin {
namespace {

class KernelMaker {
 public:
  KernelMaker(const std::vector<KernelJob>& jobs, const CompileOptions& options, const Reentry& reentry,
              const std::function<void(const CompileProgress&)>& progress)
      : jobs_(jobs), options_(options), reentry_(reentry), progress_(progress) {
    made_.kernels.resize(jobs.size());
    for (const KernelJob& job : jobs) total_work_ += job.work;
  }

  MadeKernels run() {
    // The largest first, so that no thread is left with one at the end.
    std::vector<std::size_t> order(jobs_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, std::greater<>(), [&](std::size_t i) { return jobs_[i].work; });
    // A kernel with an edited stage needs a process of its own, which is made while nothing else is at work.
    const auto others =
        std::ranges::stable_partition(order, [&](std::size_t i) { return reentry_.is_for(jobs_[i].task); });
    const auto edited = static_cast<std::size_t>(others.begin() - order.begin());
    for (std::size_t i = 0; i < edited; ++i) make(order[i]);
    for_each_parallel(others.size(), options_.jobs, [&](std::size_t i) { make(others[i]); });
    if (options_.cache != nullptr) options_.cache->trim();
    return std::move(made_);
  }

 private:
  // Whoever wants to see or to change the stages gets a kernel that goes through them.
  bool uses_cache(const KernelJob& job) const {
    return options_.cache != nullptr && !options_.dump_dir && !options_.stop_after && !reentry_.is_for(job.task);
  }

  std::optional<std::string> dump_folder(const KernelJob& job) const {
    if (!options_.dump_dir) return std::nullopt;
    return (std::filesystem::path(*options_.dump_dir) / job.folder).string();
  }

  // True when the cache had it.
  bool make_or_find(std::size_t i) {
    const KernelJob& job = jobs_[i];
    const std::string symbol = job.candidate.symbol + job.suffix;
    std::string key;
    if (uses_cache(job)) {
      key = kernel_key(job.task, job.candidate, symbol, options_);
      made_.kernels[i] = options_.cache->find(key);
      if (made_.kernels[i]) {
        note_choice(made_.kernels[i]->kernel, job.task, job.candidate, options_);
        return true;
      }
    }
    made_.kernels[i] = make_kernel(job.task, job.candidate, symbol, options_,
                                   reentry_.is_for(job.task) ? reentry_ : Reentry{}, dump_folder(job));
    if (uses_cache(job) && made_.kernels[i] && !options_.cache->store(key, *made_.kernels[i])) {
      const std::lock_guard lock(mutex_);
      made_.cache_failed = true;
    }
    return false;
  }

  void make(std::size_t i) {
    const bool found = make_or_find(i);
    const KernelJob& job = jobs_[i];
    const std::lock_guard lock(mutex_);
    ++done_;
    if (found) {
      ++made_.cached;
      total_work_ -= job.work;
    } else {
      work_done_ += job.work;
    }
    if (!progress_) return;
    const double share = total_work_ > 0 ? work_done_ / total_work_ : 1;
    progress_({done_, static_cast<int>(jobs_.size()), made_.cached, share,
               fmt::format("{} b{}", job.task.name, job.task.batch)});
  }

  const std::vector<KernelJob>& jobs_;
  const CompileOptions& options_;
  const Reentry& reentry_;
  const std::function<void(const CompileProgress&)>& progress_;
  std::mutex mutex_;  // of what follows
  MadeKernels made_;
  int done_ = 0;
  double work_done_ = 0, total_work_ = 0;
};

}  // namespace

MadeKernels make_kernels(const std::vector<KernelJob>& jobs, const CompileOptions& options, const Reentry& reentry,
                         const std::function<void(const CompileProgress&)>& progress) {
  return KernelMaker(jobs, options, reentry, progress).run();
}

}  // namespace burin
