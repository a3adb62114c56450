#include "ir/package/names.h"

#include <algorithm>

#include "ir/limits.h"

namespace burin {
namespace {

// Not <cctype>: what is a letter must not depend on the locale.
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
bool is_word(char c) { return is_digit(c) || is_lower(c) || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

constexpr std::size_t kMaxArchNameBytes = 16;

// Bytes of the well-formed UTF-8 sequence at the start of `text` (Unicode 15, table 3-7), 0 when there is none.
std::size_t utf8_sequence(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const auto continues = [&](std::size_t i, unsigned low, unsigned high) { return byte(i) >= low && byte(i) <= high; };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return continues(1, 0x80, 0xbf) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef) {
    const bool second = continues(1, first == 0xe0 ? 0xa0 : 0x80, first == 0xed ? 0x9f : 0xbf);
    return second && continues(2, 0x80, 0xbf) ? 3 : 0;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    const bool second = continues(1, first == 0xf0 ? 0x90 : 0x80, first == 0xf4 ? 0x8f : 0xbf);
    return second && continues(2, 0x80, 0xbf) && continues(3, 0x80, 0xbf) ? 4 : 0;
  }
  return 0;
}

}  // namespace

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t bytes = utf8_sequence(text);
    if (bytes == 0) return false;
    text.remove_prefix(bytes);
  }
  return true;
}

bool is_plain_text(std::string_view text) {
  return std::none_of(text.begin(), text.end(), is_control) && is_utf8(text);
}

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

std::string printable(std::string_view text, std::size_t limit) {
  std::string result;
  while (!text.empty() && result.size() < limit) {
    const std::size_t bytes = utf8_sequence(text);
    const bool good = bytes > 0 && !is_control(text[0]);
    result += good ? text.substr(0, bytes) : std::string_view("?");
    text.remove_prefix(std::max<std::size_t>(bytes, 1));
  }
  return text.empty() ? result : result + "...";
}

}  // namespace burin
