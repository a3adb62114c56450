#include "ir/package/names.h"

#include <algorithm>

#include "ir/limits.h"

namespace burin {
namespace {

// Not <cctype>: what is a letter must not depend on the locale.
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
bool is_word(char c) { return is_digit(c) || is_lower(c) || (c >= 'A' && c <= 'Z') || c == '_'; }

constexpr std::size_t kMaxArchNameBytes = 16;

}  // namespace

bool is_package_path(std::string_view path) {
  if (path.empty() || path.size() > static_cast<std::size_t>(kMaxPackagePathBytes)) return false;
  if (path == kManifestPath || !is_plain_text(path) || path.find('\\') != path.npos) return false;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view name = path.substr(begin, end - begin);
    if (name.empty() || name == "." || name == "..") return false;
    begin = end + 1;
  }
  return true;
}

bool is_symbol(std::string_view text) {
  return !text.empty() && text.size() <= static_cast<std::size_t>(kMaxSymbolBytes) && !is_digit(text[0]) &&
         std::all_of(text.begin(), text.end(), is_word);
}

bool is_arch_name(std::string_view text) {
  if (text.size() > kMaxArchNameBytes) return false;
  const std::size_t underscore = text.find('_');
  if (underscore == text.npos || underscore == 0 || underscore + 1 == text.size()) return false;
  const std::string_view family = text.substr(0, underscore);
  std::string_view number = text.substr(underscore + 1);
  if (number.size() > 1 && is_lower(number.back())) number.remove_suffix(1);  // sm_90a
  return std::all_of(family.begin(), family.end(), is_lower) && std::all_of(number.begin(), number.end(), is_digit);
}

}  // namespace burin
