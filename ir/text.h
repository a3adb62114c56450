// The text form that the nouns share: one "key: value" per line, '#' starts a comment, blank lines are skipped.
//
// A reader takes the lines it knows; finish() then reports what is left. Every fault is one Error(bad_input) that says
// what was read, the line's number and what was expected there.
#pragma once

#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/error.h"

namespace burin {

struct TextLine {
  int number = 0;  // from 1
  std::string_view key, value;
  bool taken = false;
};

class KeyValueText {
 public:
  // `what` names the thing in errors ("kernel plan"). `text` must outlive this.
  KeyValueText(std::string_view text, std::string what);

  // The one line with this key.
  const TextLine& required(std::string_view key);
  const TextLine* optional(std::string_view key);
  // The lines whose key is `word` followed by a blank and more, in the order of the text.
  std::vector<const TextLine*> with_first_word(std::string_view word);
  // Throws when a line was not taken.
  void finish() const;

  std::int64_t integer(const TextLine& line, std::string_view token) const;
  int integer32(const TextLine& line, std::string_view token) const;
  int integer32(std::string_view key);
  bool boolean(std::string_view key);
  double real(const TextLine& line, std::string_view token) const;
  float real32(const TextLine& line, std::string_view token) const;
  // "3x5" or "2x14x14": exactly `count` integers.
  std::vector<int> extents(std::string_view key, int count);
  // "64 -> 128".
  std::pair<int, int> from_to(std::string_view key);
  // "0-15,17" or "none"; at most `limit` values.
  std::vector<int> integers(const TextLine& line, std::size_t limit) const;

  template <typename... Args>
  [[noreturn]] void fail_at(const TextLine& line, fmt::format_string<Args...> format, Args&&... args) const {
    fail(ErrorKind::bad_input, "{}, line {}: {}", what_, line.number, fmt::format(format, std::forward<Args>(args)...));
  }

 private:
  std::vector<TextLine> lines_;
  std::string what_;
};

// "0-15,17": runs of three and more become ranges, the order stays. "none" when empty.
std::string print_integers(std::span<const int> values);

// All of `token` as a number; nothing when it is not one, or none of this type.
template <typename Number>
std::optional<Number> parse_number(std::string_view token) {
  Number number{};
  const char* end = token.data() + token.size();
  const auto [stop, error] = std::from_chars(token.data(), end, number);
  if (error != std::errc{} || stop != end) return std::nullopt;
  return number;
}

std::string_view trim(std::string_view text);
// The parts between separators, trimmed; an empty text has one empty part.
std::vector<std::string_view> split(std::string_view text, char separator);
// The words between blanks.
std::vector<std::string_view> words(std::string_view text);

}  // namespace burin
