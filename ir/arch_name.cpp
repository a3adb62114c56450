#include "ir/arch_name.h"

#include <charconv>

namespace burin {

std::optional<ArchName> parse_arch_name(std::string_view name) {
  std::string_view rest = name;
  for (const std::string_view prefix : {"sm_", "compute_"}) {
    if (rest.starts_with(prefix)) {
      rest.remove_prefix(prefix.size());
      break;
    }
  }
  ArchName arch;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), arch.compute);
  const std::string_view suffix(end, rest.data() + rest.size() - end);
  constexpr int kOldest = 10;
  constexpr int kNewest = 999;
  if (rest.size() == name.size() || error != std::errc{} || arch.compute < kOldest || arch.compute > kNewest ||
      !(suffix.empty() || suffix == "a" || suffix == "f")) {
    return std::nullopt;
  }
  arch.suffix = suffix.empty() ? '\0' : suffix.front();
  return arch;
}

}  // namespace burin
