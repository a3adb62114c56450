// Parts of verify(Manifest) that have files of their own.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "ir/package/manifest.h"

namespace burin {

inline constexpr std::size_t kMaxShortTextBytes = 256;  // versions, template names, hashes

// The programs and what they need of the rest, when that has no faults.
void check_programs(const Manifest& manifest, std::vector<std::string>& faults);

}  // namespace burin
