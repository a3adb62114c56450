// The text form that the nouns share: one "key: value" per line, '#' starts a comment, blank lines are skipped.
//
// A reader takes the lines it knows; finish() then reports what is left. Every fault is one Error(bad_input) that says
// what was read, the line's number and what was expected there.
#pragma once

#include <fmt/format.h>

#include <charconv>
#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "ir/error.h"
#include "ir/named_enum.h"

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
  // The same, or null.
  const TextLine* find(std::string_view key);
  // The lines whose key is `word` followed by a blank and more, in the order of the text.
  std::vector<const TextLine*> with_first_word(std::string_view word);
  // Throws when a line was not taken.
  void finish() const;

  std::int64_t integer(const TextLine& line, std::string_view token) const;
  int integer32(const TextLine& line, std::string_view token) const;
  double real(const TextLine& line, std::string_view token) const;
  float real32(const TextLine& line, std::string_view token) const;
  // "0-15,17" or "none"; at most `limit` values.
  std::vector<int> integers(const TextLine& line, std::size_t limit) const;
  template <NamedEnum Enum>
  Enum named(const TextLine& line, std::string_view token) const {
    const std::optional<Enum> known = parse_enum<Enum>(token);
    if (!known) fail_at(line, "'{}' is not {}; known are {}", token, names_of(Enum{}).noun, known_names<Enum>());
    return *known;
  }

  // What the line says, as a value of this type.
  void read(const TextLine& line, int& value) const { value = integer32(line, line.value); }
  void read(const TextLine& line, std::int64_t& value) const { value = integer(line, line.value); }
  void read(const TextLine& line, double& value) const { value = real(line, line.value); }
  void read(const TextLine& line, float& value) const { value = real32(line, line.value); }
  void read(const TextLine& line, std::string& value) const { value = line.value; }
  void read(const TextLine& line, bool& value) const;  // "yes" or "no"
  template <NamedEnum Enum>
  void read(const TextLine& line, Enum& value) const {
    value = named<Enum>(line, line.value);
  }
  // "3x5" or "2x14x14": exactly as many integers.
  template <std::same_as<int>... Integers>
  void read(const TextLine& line, const std::tuple<Integers&...>& values) const {
    const std::vector<int> given = extents(line, sizeof...(Integers));
    std::size_t i = 0;
    std::apply([&](Integers&... value) { ((value = given[i++]), ...); }, values);
  }
  template <typename Value>
  void read(std::string_view key, Value&& value) {
    read(required(key), value);
  }

  template <typename... Args>
  [[noreturn]] void fail_at(const TextLine& line, fmt::format_string<Args...> format, Args&&... args) const {
    fail(ErrorKind::bad_input, "{}, line {}: {}", what_, line.number, fmt::format(format, std::forward<Args>(args)...));
  }

 private:
  std::vector<int> extents(const TextLine& line, std::size_t count) const;

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
