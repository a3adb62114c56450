// Whether what a package is compared with is what it was compiled from.
#pragma once

#include <filesystem>
#include <string>

#include "ir/error.h"
#include "ir/package/manifest.h"

namespace burin {

// "; the package was compiled from net.onnx" where `path` has another name, else nothing.
inline std::string other_source(const std::string& path, const Manifest& manifest) {
  if (manifest.source.empty() || std::filesystem::path(path).filename() == manifest.source) return "";
  return "; the package was compiled from " + manifest.source;
}

// Does `work`, whose faults of input say what the package was compiled from.
template <typename Work>
auto comparing_with(const std::string& path, const Manifest& manifest, const Work& work) {
  try {
    return work();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::bad_input) throw;
    fail(error.kind(), "{}{}", error.what(), other_source(path, manifest));
  }
}

}  // namespace burin
