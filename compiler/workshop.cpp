#include "compiler/workshop.h"

#include <algorithm>
#include <filesystem>

#include "compiler/compile_layer.h"
#include "compiler/kernel_cache.h"
#include "compiler/observer.h"
#include "compiler/parallel_for.h"
#include "ir/error.h"

namespace burin {
Workshop::Workshop(const Jobs& jobs, const CompileOptions& options, const Reentry& reentry,
                   const std::function<void(const CompileProgress&)>& progress)
    : layers(jobs.layers.size()),
      operators(jobs.operators.size()),
      jobs_(jobs),
      options_(options),
      reentry_(reentry),
      progress_(progress) {
  for (std::size_t i = 0; i < count(); ++i) total_work_ += work_of(i);
}

void Workshop::run() {
  // The largest first, so that no thread is left with one at the end.
  std::vector<std::size_t> order(count());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return work_of(a) > work_of(b); });
  for_each_parallel(order.size(), options_.jobs, [&](std::size_t i) { compile(order[i]); });
  if (uses_cache()) options_.cache->trim();
}

// Of job i, layers first, in nonzeros: what a kernel costs is in proportion, but for a part that all have.
double Workshop::work_of(std::size_t i) const {
  constexpr double kFixed = 500;
  return kFixed + (i < jobs_.layers.size() ? static_cast<double>(jobs_.layers[i].nonzeros) : 0);
}

// `batch` 0: of a kernel that serves several.
std::optional<std::string> Workshop::dump_folder(const std::string& name, int batch) const {
  if (!options_.dump_dir) return std::nullopt;
  std::filesystem::path folder = *options_.dump_dir;
  folder /= name;
  if (batch > 0 && options_.batches.size() > 1) folder /= fmt::format("b{}", batch);
  return folder.string();
}

// Whoever wants to see or to change the stages gets a kernel that goes through them.
bool Workshop::uses_cache() const {
  return options_.cache != nullptr && !options_.dump_dir && !options_.stop_after && !options_.from_file;
}

// True when the cache had it.
bool Workshop::compile_layer_or_find(std::size_t i) {
  const LayerJob& job = jobs_.layers[i];
  std::string key;
  if (uses_cache()) {
    const TunedPlan* tuned = find_tuned(options_.tuned, job.layer->name, job.batch);
    key = cache_key(job, options_, tuned);
    layers[i] = options_.cache->find(key);
    if (layers[i] && tuned != nullptr) layers[i]->record.tuning = tuned->evidence;
    if (layers[i]) return true;
  }
  layers[i] = compile_layer(job, options_, reentry_, dump_folder(folder_name(job.layer->name) + job.suffix, job.batch));
  if (uses_cache() && layers[i] && !options_.cache->store(key, *layers[i])) {
    const std::lock_guard lock(mutex_);
    cache_failed = true;
  }
  return false;
}

void Workshop::compile(std::size_t i) {
  bool found = false;
  std::string what;
  if (i < jobs_.layers.size()) {
    what = fmt::format("{} b{}", jobs_.layers[i].layer->name, jobs_.layers[i].batch);
    found = compile_layer_or_find(i);
  } else {
    const OperatorJob& job = jobs_.operators[i - jobs_.layers.size()];
    what = job.op;
    operators[i - jobs_.layers.size()] = compile_operator(job, options_, dump_folder(job.folder, 0));
  }
  const std::lock_guard lock(mutex_);
  ++done_;
  if (found) {
    ++cached;
    total_work_ -= work_of(i);
  } else {
    work_done_ += work_of(i);
  }
  if (!progress_) return;
  const double share = total_work_ > 0 ? work_done_ / total_work_ : 1;
  progress_({done_, static_cast<int>(count()), cached, share, what});
}

}  // namespace burin
