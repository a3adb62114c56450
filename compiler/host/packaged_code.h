// What the host executor takes from a package.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/package/package.h"

namespace burin {

// The kernel's specialised module. Throws Error(unsupported) where the package has none.
const std::string& bitcode_of(const Package& package, const Kernel& kernel);

// A file of words, such as a kernel's weights.
std::vector<std::uint32_t> words_of(const std::string& bytes);

}  // namespace burin
