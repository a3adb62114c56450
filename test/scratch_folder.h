// Files of a test.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace burin_test {

// A new empty folder that is removed with everything in it.
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  // Writes a file, in folders that are made for it, and returns its path.
  std::string write(const std::string& name, const std::string& content) const;
  // Names of what lies in it, sorted.
  std::vector<std::string> entries() const;

 private:
  std::filesystem::path path_;
};

// All of a file. Throw std::runtime_error when it cannot be read or written.
std::string read_file(const std::string& path);
void write_file(const std::string& path, const std::string& content);

}  // namespace burin_test
