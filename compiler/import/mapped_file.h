// A file, mapped into memory for reading.
#pragma once

#include <string>
#include <string_view>

namespace burin {

class MappedFile {
 public:
  // Throws Error(bad_input) for a file that is missing, unreadable, empty, or not a regular file.
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::string_view bytes() const { return {static_cast<const char*>(address_), size_}; }

 private:
  void* address_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace burin
