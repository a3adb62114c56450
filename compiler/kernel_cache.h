// Kernels that were compiled before, on disk. An entry is a package of one kernel, named by everything that it was made
// from; whoever finds it damaged compiles again.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "compiler/compile.h"
#include "compiler/jobs.h"
#include "compiler/packaged_kernel.h"

namespace burin {

class KernelCache {
 public:
  // The folder is made when the first entry is.
  KernelCache(std::filesystem::path folder, std::int64_t limit_bytes)
      : folder_(std::move(folder)), limit_bytes_(limit_bytes) {}

  std::optional<PackagedKernel> find(const std::string& key) const;
  // False where the folder cannot be written to.
  bool store(const std::string& key, const PackagedKernel& kernel) const;
  // Removes what was used longest ago, until the rest is within the limit.
  void trim() const;
  std::string folder() const { return folder_.string(); }

 private:
  std::filesystem::path path_of(const std::string& key) const { return folder_ / (key + ".burin"); }

  std::filesystem::path folder_;
  std::int64_t limit_bytes_;
};

// Of everything that a layer's code depends on: this program, its assembler, the layer with its weights, the options
// and the plan that was measured for it, if any. What was measured is not part of it.
std::string cache_key(const LayerJob& job, const CompileOptions& options, const TunedPlan* tuned);

}  // namespace burin
