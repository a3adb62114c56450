// One list of a noun's lines serves to print it and to parse it: a function template over one of these two, which names
// each line and the attribute that it holds.
#pragma once

#include <fmt/ranges.h>

#include <optional>
#include <string>
#include <string_view>
#include <tuple>

#include "ir/text.h"

namespace burin {

class LinePrinter {
 public:
  void section(std::string_view comment) { text += fmt::format("\n# {}\n", comment); }

  template <typename Value>
  void line(std::string_view key, const Value& value, std::string_view comment = {}) {
    text += fmt::format("{}: {}", key, text_of(value));
    if (!comment.empty()) text += fmt::format("  # {}", comment);
    text += '\n';
  }
  // A line that a reader may lack; `stands` says whether it is printed.
  template <typename Value>
  void optional(bool stands, std::string_view key, const Value& value, std::string_view comment = {}) {
    if (stands) line(key, value, comment);
  }
  // Whether there is the part whose first line has this key; a reader makes it.
  template <typename Part>
  bool has(std::string_view, const std::optional<Part>& part) const {
    return part.has_value();
  }

  std::string text;

 private:
  template <typename Value>
  static auto text_of(const Value& value) {
    if constexpr (NamedEnum<Value>) {
      return to_string(value);
    } else {
      return fmt::to_string(value);
    }
  }
  static std::string_view text_of(bool value) { return value ? "yes" : "no"; }
  template <typename... Integers>
  static std::string text_of(const std::tuple<Integers...>& extents) {
    return fmt::format("{}", fmt::join(extents, "x"));
  }
};

class LineReader : public KeyValueText {
 public:
  using KeyValueText::KeyValueText;

  void section(std::string_view) {}

  template <typename Value>
  void line(std::string_view key, Value&& value, std::string_view = {}) {
    read(required(key), value);
  }
  template <typename Value>
  void optional(bool, std::string_view key, Value& value, std::string_view = {}) {
    if (const TextLine* line = find(key)) read(*line, value);
  }
  template <typename Part>
  bool has(std::string_view key, std::optional<Part>& part) {
    if (find(key) != nullptr) part.emplace();
    return part.has_value();
  }
};

}  // namespace burin
