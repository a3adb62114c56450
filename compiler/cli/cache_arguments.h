// The options that say where kernels, and what was measured of them, are kept for the next run; the same for every
// command that keeps something.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>

namespace burin {

struct CacheArguments {
  bool off = false;
  std::optional<std::string> given;
  int limit_gib = 4;

  // --cache, --no-cache and --cache-limit.
  void add_to(CLI::App& command);
  // Throws Error(usage): an option that does nothing beside --no-cache, or a folder that cannot be made.
  void check(const CLI::App& command) const;
  // --cache, else BURIN_CACHE ("off": nowhere), else the user's cache folder; "": nowhere.
  std::string folder() const;
  std::int64_t limit_bytes() const { return std::int64_t{limit_gib} << 30; }
};

// --anew: what the cache has of earlier measurements is measured again.
void add_anew_option(CLI::App& command, bool& anew);
// Throws Error(usage) where nothing is kept.
void check_anew(const CacheArguments& cache);

}  // namespace burin
