// Makes zip files that burin never would, with libzip itself.
#pragma once

#include <string>
#include <vector>

namespace burin_test {

struct ZipEntry {
  std::string name;
  std::string content;
  bool compressed = false;
  bool encrypted = false;
};

std::string make_zip(const std::vector<ZipEntry>& entries);

// What libzip says of a zip file, in the order of its directory.
struct ZipListing {
  std::string name, content;
  bool stored = false;
  bool dated_1980 = false;
};
std::vector<ZipListing> list_zip(const std::string& path);

// Entries for make_zip() from a package's bytes.
std::vector<ZipEntry> entries_of(const std::string& path);

}  // namespace burin_test
