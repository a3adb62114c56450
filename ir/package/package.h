// Package: the .burin file, the only thing that passes from the compiler to the runtime. A zip file, so `unzip -l`
// shows it. Entries are deflated.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "ir/package/manifest.h"

namespace burin {

class PackedFiles;  // the archive that a package was read from

// A file of a package. Of a package that was read it stays packed until its content is asked for.
class PackageFile {
 public:
  PackageFile() : PackageFile(std::string()) {}
  PackageFile(std::string content);  // NOLINT(google-explicit-constructor): it is the file's content
  PackageFile(const char* content) : PackageFile(std::string(content)) {}  // NOLINT(google-explicit-constructor)
  PackageFile(std::shared_ptr<const PackedFiles> packed, std::uint64_t index, std::int64_t bytes)
      : packed_(std::move(packed)), index_(index), bytes_(bytes) {}

  std::int64_t bytes() const { return bytes_; }
  // Expanded where the file is packed and nobody holds its content, and the checksum compared; throws Error(bad_input)
  // where it is damaged. Threads may call it at once.
  std::shared_ptr<const std::string> content() const;
  bool operator==(const PackageFile& other) const { return bytes_ == other.bytes_ && *content() == *other.content(); }

 private:
  std::shared_ptr<const std::string> content_;  // null: packed
  std::shared_ptr<const PackedFiles> packed_;
  std::uint64_t index_ = 0;
  std::int64_t bytes_ = 0;
};

struct Package {
  Manifest manifest;
  std::map<std::string, PackageFile> files;  // by their paths inside the package; without manifest.json
};

// Faults of the manifest, files it names that are absent or of another size, files it does not name.
std::vector<std::string> verify(const Package& package);

// Writes to a temporary name beside `path` and renames: there is never half a package. The same package gives the same
// bytes. Throws Error.
void write_package(const Package& package, const std::string& path);

// Reads the manifest, verifies, and compares the files' sizes and checksums with it as the archive has them. Throws
// Error(bad_input) that names the file and what is wrong with it. A file's content is checked when it is asked for.
Package read_package(const std::string& path);
// The same from memory (fuzzing, embedding).
Package read_package_from_memory(std::string bytes, const std::string& name);
// Expands all files, and holds machine code to what the manifest says of it (ir/check_cubin.h); throws Error(bad_input)
// where one is damaged or another's.
void check_contents(const Package& package);

}  // namespace burin
