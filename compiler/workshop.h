// All kernels of a compilation, made by several threads.
#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "compiler/compile.h"
#include "compiler/compile_operator.h"
#include "compiler/jobs.h"
#include "compiler/packaged_kernel.h"
#include "compiler/reentry.h"

namespace burin {

class Workshop {
 public:
  // All of them must outlive this. `progress` may be empty.
  Workshop(const Jobs& jobs, const CompileOptions& options, const Reentry& reentry,
           const std::function<void(const CompileProgress&)>& progress);

  // Makes every kernel, or finds it in the cache; the first error stops the rest and is thrown again.
  void run();

  // Of each job, in their order; nothing where --stop-after stopped it.
  std::vector<std::optional<PackagedKernel>> layers;
  std::vector<std::optional<PackagedOperator>> operators;
  int cached = 0;             // kernels that the cache had
  bool cache_failed = false;  // it could not be written to

 private:
  std::size_t count() const { return jobs_.layers.size() + jobs_.operators.size(); }
  double work_of(std::size_t i) const;
  std::optional<std::string> dump_folder(const std::string& name, int batch) const;
  bool uses_cache() const;
  bool compile_layer_or_find(std::size_t i);
  void compile(std::size_t i);

  const Jobs& jobs_;
  const CompileOptions& options_;
  const Reentry& reentry_;
  const std::function<void(const CompileProgress&)>& progress_;
  std::mutex mutex_;  // of `cached`, `cache_failed` and what follows
  int done_ = 0;
  double work_done_ = 0, total_work_ = 0;
};

}  // namespace burin
