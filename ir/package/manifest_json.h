// The JSON form of a manifest, together with the list of the package's files that only package.cpp reads and writes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/package/manifest.h"

namespace burin {

// What the manifest says of a file of the package. A zip entry's own checksum guards its content; this one binds the
// content to the manifest, so that an entry that was exchanged for another is noticed.
struct FileRecord {
  std::string path;
  std::int64_t bytes = 0;
  std::uint32_t crc32 = 0;
};

// CRC-32 as zip has it.
std::uint32_t checksum(std::string_view bytes);

std::string print_json(const Manifest& manifest, const std::vector<FileRecord>& files);

struct ParsedManifest {
  Manifest manifest;
  std::optional<std::vector<FileRecord>> files;
};

// Throws Error(bad_input) whose text starts with "manifest.json: " and the path of the attribute. Checks types, not
// limits: those are verify()'s.
ParsedManifest parse_json(std::string_view json);

}  // namespace burin
