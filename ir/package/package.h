// Package: the .burin file, the only thing that passes from the compiler to the runtime. A zip file, so `unzip -l`
// shows it. Entries are deflated.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "ir/package/manifest.h"

namespace burin {

struct Package {
  Manifest manifest;
  std::map<std::string, std::string> files;  // path inside the package -> content; without manifest.json
};

// Faults of the manifest, files it names that are absent or of another size, files it does not name.
std::vector<std::string> verify(const Package& package);

// Writes to a temporary name beside `path` and renames: there is never half a package. The same package gives the same
// bytes. Throws Error.
void write_package(const Package& package, const std::string& path);

// Reads, checks every checksum and verifies. Throws Error(bad_input) that names the file and what is wrong with it.
Package read_package(const std::string& path);
// The same from memory (fuzzing, embedding).
Package read_package_from_memory(std::string_view bytes, const std::string& name);

}  // namespace burin
