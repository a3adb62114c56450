// .npz: a zip archive of .npy arrays, stored or deflated.
#pragma once

#include <string>
#include <string_view>

#include "compiler/import/weights_tensor.h"

namespace burin {

// What one array and all arrays of an archive may unpack to. Packed sizes say little about unpacked ones.
inline constexpr std::uint64_t kMaxNpzArrayBytes = std::uint64_t{1} << 31;
inline constexpr std::uint64_t kMaxNpzBytes = std::uint64_t{1} << 33;

// The arrays are unpacked into memory of the result; `bytes` is not needed afterwards. A string array named `geometry`
// becomes the file's geometry. Throws Error(bad_input).
WeightsFile parse_npz(std::string_view bytes, const std::string& path);

}  // namespace burin
