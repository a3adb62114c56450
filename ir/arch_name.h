// Names of GPU architectures as CUDA's tools spell them.
#pragma once

#include <optional>
#include <string_view>

namespace burin {

// The number and suffix of "sm_90a" or "compute_90a": 90 and 'a'.
struct ArchName {
  int compute = 0;
  char suffix = '\0';  // 'a', 'f' or none
  int major() const { return compute / 10; }
  int minor() const { return compute % 10; }
};

// Nothing for what is no such name.
std::optional<ArchName> parse_arch_name(std::string_view name);

}  // namespace burin
