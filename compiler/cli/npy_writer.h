// Writes a float32 tensor as .npy (version 1.0, little-endian, C order).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace burin {

// Writes to a temporary name beside `path` and renames. Throws Error(bad_input) that names the file.
void write_npy(const std::string& path, const std::vector<std::int64_t>& shape, std::span<const float> values);

}  // namespace burin
