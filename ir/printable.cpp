#include "ir/printable.h"

#include <fmt/format.h>

#include <algorithm>

namespace burin {
namespace {

// Not <cctype>: what is a control character must not depend on the locale.
bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

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

std::string printable(std::string_view text, std::size_t limit) {
  std::string shown;
  while (!text.empty()) {
    const std::size_t bytes = utf8_sequence(text);
    const bool plain = bytes > 0 && !is_control(text[0]);
    const std::string next =
        plain ? std::string(text.substr(0, bytes)) : fmt::format("\\x{:02x}", static_cast<unsigned char>(text[0]));
    if (shown.size() + next.size() > limit) return shown + "...";
    shown += next;
    text.remove_prefix(std::max<std::size_t>(bytes, 1));
  }
  return shown;
}

std::string in_quotes(std::string_view name) { return fmt::format("'{}'", printable(name)); }

}  // namespace burin
