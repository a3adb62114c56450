#include "compiler/cli/cache_arguments.h"

#include <cstdlib>
#include <filesystem>

#include "compiler/cli/arguments.h"
#include "compiler/cli/files.h"
#include "ir/error.h"

namespace burin {

void CacheArguments::add_to(CLI::App& command) {
  add_option(command, "--cache DIR", given,
             "Where kernels and their times are kept for the next run (default: BURIN_CACHE, or ~/.cache/burin)");
  command.add_flag("--no-cache", off, "Make everything anew, and keep nothing");
  add_option(command, "--cache-limit N", limit_gib, "GiB that the cache may take (default 4)")
      ->check(whole_number(1, 1 << 20));
}

void CacheArguments::check(const CLI::App& command) const {
  if (off) refuse_given(command, {"--cache", "--cache-limit"}, "--no-cache uses no cache");
  if (given) check_output_folder("--cache", *given);
}

std::string CacheArguments::folder() const {
  const auto variable = [](const char* name) -> std::string {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
  };
  if (off) return {};
  std::filesystem::path folder = given.value_or(variable("BURIN_CACHE"));
  if (!given && folder == "off") return {};
  if (folder.empty() && !variable("XDG_CACHE_HOME").empty()) {
    folder = std::filesystem::path(variable("XDG_CACHE_HOME")) / "burin";
  } else if (folder.empty() && !variable("HOME").empty()) {
    folder = std::filesystem::path(variable("HOME")) / ".cache" / "burin";
  }
  return folder.string();
}

void add_anew_option(CLI::App& command, bool& anew) {
  command.add_flag("--anew", anew, "Measure what the cache has from earlier runs on this GPU, too");
}

void check_anew(const CacheArguments& cache) {
  if (!cache.folder().empty()) return;
  fail(ErrorKind::usage, "--anew has no effect here: no cache is used, and what was measured is kept in it");
}

}  // namespace burin
