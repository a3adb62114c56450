// Writes a float32 tensor as .npy (version 1.0, little-endian, C order).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace burin {

// Whole or not at all. Throws Error(usage) that names the file where it cannot be written.
void write_npy(const std::string& path, const std::vector<std::int64_t>& shape, std::span<const float> values);

}  // namespace burin
