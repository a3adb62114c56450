// Packages for the tests: two kernels with all kinds of binaries, and two leftover tensors.
#pragma once

#include <filesystem>
#include <string>

#include "ir/error.h"
#include "ir/package/package.h"

namespace burin_test {

burin::Manifest sample_manifest();
burin::Package sample_package();

// A folder that is removed with all it holds at the end of the test.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  const std::filesystem::path& path() const { return path_; }
  int entries() const;

 private:
  std::filesystem::path path_;
};

std::string read_bytes(const std::string& path);
void write_bytes(const std::string& path, const std::string& bytes);

// The text of the burin::Error that `action` throws, "" when it throws none. A bad_input error is expected unless
// `kind` says otherwise; another kind gives a text that says so.
template <typename Action>
std::string error_of(Action action, burin::ErrorKind kind = burin::ErrorKind::bad_input) {
  try {
    action();
  } catch (const burin::Error& error) {
    if (error.kind() != kind) return "an error of another kind: " + std::string(error.what());
    return error.what();
  }
  return "";
}

}  // namespace burin_test
