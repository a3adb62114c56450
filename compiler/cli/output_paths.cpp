#include "compiler/cli/output_paths.h"

#include <algorithm>
#include <filesystem>

#include "ir/error.h"
#include "ir/package/atomic_file.h"

namespace burin {
namespace {

// Paths that lead to the same file, whether it is there or not.
bool same_file(const std::string& a, const std::string& b) {
  std::error_code error;
  if (std::filesystem::equivalent(a, b, error)) return true;
  const auto resolved_a = std::filesystem::weakly_canonical(a, error);
  if (error) return false;
  const auto resolved_b = std::filesystem::weakly_canonical(b, error);
  return !error && resolved_a == resolved_b;
}

// Does `check`, whose errors then begin with the option.
template <typename Check>
void naming(const std::string& option, const Check& check) {
  try {
    check();
  } catch (const Error& error) {
    fail(error.kind(), "{}: {}", option, error.what());
  }
}

}  // namespace

void check_output_file(const std::string& option, const std::string& path, const std::vector<std::string>& inputs) {
  naming(option, [&] { check_can_write(path); });
  if (std::ranges::any_of(inputs, [&](const std::string& input) { return same_file(input, path); })) {
    fail(ErrorKind::usage, "{}: {} is read by the same command, and would be overwritten; name another file", option,
         path);
  }
}

void check_output_files(const std::string& option, const std::vector<std::string>& paths,
                        const std::vector<std::string>& inputs) {
  for (auto path = paths.begin(); path != paths.end(); ++path) {
    check_output_file(option, *path, inputs);
    if (std::any_of(paths.begin(), path, [&](const std::string& other) { return same_file(other, *path); })) {
      fail(ErrorKind::usage, "{}: {} is named for two outputs", option, *path);
    }
  }
}

void check_output_folder(const std::string& option, const std::string& path) {
  naming(option, [&] { check_can_fill_folder(path); });
}

}  // namespace burin
