// Parts of verify(Manifest) that have files of their own.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "ir/package/manifest.h"

namespace burin {

inline constexpr std::size_t kMaxShortTextBytes = 256;  // versions, template names, hashes

// The network and what it needs of the rest, when that has no faults.
void check_network(const Manifest& manifest, std::vector<std::string>& faults);

}  // namespace burin
