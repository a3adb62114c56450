// A file that is there whole or not at all.
#pragma once

#include <string>
#include <string_view>

namespace burin {

// Writes to a temporary name beside `path` and renames. Throws Error(bad_input) that names the file and says why.
void write_file_atomically(const std::string& path, std::string_view content);

}  // namespace burin
