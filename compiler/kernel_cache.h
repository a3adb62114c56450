// Kernels that were compiled before, choices that were made, and times that were measured, on disk. An entry is named
// by everything that it was made from: a package of one kernel, or text. Whoever finds one damaged does the work again.
// Choices are kept in memory, too, since planning a network asks for the same ones again and again.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/choose/choose.h"
#include "compiler/make_kernel.h"
#include "compiler/options.h"

namespace burin {

// Several threads may use one.
class KernelCache {
 public:
  // This one keeps choices alone, in memory alone.
  KernelCache() = default;
  // The folder is made when the first entry is.
  KernelCache(std::filesystem::path folder, std::int64_t limit_bytes)
      : folder_(std::move(folder)), limit_bytes_(limit_bytes) {}

  bool keeps_kernels() const { return !folder_.empty(); }
  std::optional<PackagedKernel> find(const std::string& key) const;
  // False where the folder cannot be written to.
  bool store(const std::string& key, const PackagedKernel& kernel) const;
  std::optional<Choice> find_choice(const std::string& key) const;
  void store_choice(const std::string& key, const Choice& choice) const;
  // In memory alone: that no kernel does what the key names.
  bool is_impossible(const std::string& key) const;
  void store_impossible(const std::string& key) const;
  // What was measured, as text (compiler/tune/measurements.h).
  std::optional<std::string> find_times(const std::string& key) const { return read_text(times_path(key)); }
  void store_times(const std::string& key, const std::string& text) const { write_text(times_path(key), text); }
  // Removes what was used longest ago, until the rest is within the limit.
  void trim() const;
  std::string folder() const { return folder_.string(); }

 private:
  std::filesystem::path path_of(const std::string& key) const { return folder_ / (key + ".burin"); }
  std::filesystem::path choice_path(const std::string& key) const { return folder_ / (key + ".choice"); }
  std::filesystem::path times_path(const std::string& key) const { return folder_ / (key + ".times.json"); }
  // Nothing where there is no folder, or no such file.
  std::optional<std::string> read_text(const std::filesystem::path& path) const;
  void write_text(const std::filesystem::path& path, const std::string& text) const;
  std::optional<Choice> read_choice(const std::string& key) const;
  void remember(const std::string& key, std::optional<Choice> choice) const;

  std::filesystem::path folder_;
  std::int64_t limit_bytes_ = 0;
  mutable std::mutex mutex_;
  mutable std::map<std::string, std::optional<Choice>> known_;  // nothing: it is impossible
};

// BLAKE3 in hexadecimal of the parts, which cannot run into each other.
std::string content_hash(const std::vector<std::string_view>& parts);

// The same of tool version, task with its weights and biases, plan and `edited` (a stage file that was fed back).
std::string source_hash(const Task& task, const std::string& plan, const std::string& edited);

// Names all that a kernel's code depends on: this program, its assembler, the task with its weights, the plan, the
// symbol and the options. What was measured is not part of it, nor what the kernel is called in a package.
std::string kernel_key(const Task& task, const Candidate& candidate, const CompileOptions& options);

// Names all that a task's kernels depend on beside their plans: this program, its assembler, and the task with its
// weights and the zeros of its input. `others`: what else the entry depends on.
std::string task_key(const Task& task, const std::string& others);

// choose(), or what the options' cache has of it.
Choice cached_choice(const Task& task, const CompileOptions& options);

// What the choice is estimated to take that choose_by_models() makes, or what the options' cache has of it; infinite
// where no kernel does the task.
double estimated_us(const Task& task, const CompileOptions& options);

}  // namespace burin
