#include "ir/numbered_names.h"

#include <fmt/format.h>

namespace burin {

std::string NumberedNames::suffix(const std::string& wanted) {
  int& number = last_number_.try_emplace(wanted, 1).first->second;
  std::string suffix;
  while (!given_.insert(wanted + suffix).second) suffix = fmt::format("_{}", ++number);
  return suffix;
}

}  // namespace burin
