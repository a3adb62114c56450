#include "ir/package/names.h"

#include <algorithm>

#include "ir/limits.h"

namespace burin {
namespace {

// Not <cctype>: what is a letter must not depend on the locale.
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word(char c) { return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

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

}  // namespace burin
