// Enumerations whose values have names in files, on the command line and in messages. Each has one table, which serves
// to print a value, to read one and to say which are known.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace burin {

// The names of values that count from 0, in their order. `noun` is what a message calls one of them: "a precision".
template <std::size_t kCount>
struct EnumNames {
  std::string_view noun;
  std::array<std::string_view, kCount> names;
};

// Beside the enumeration stands `constexpr EnumNames<3> names_of(Enum) { return {"a noun", {"first", ...}}; }`.
template <typename Enum>
concept NamedEnum = requires(Enum value) { names_of(value).noun; };

// A number that was cast to the enumeration may be none of its values.
template <NamedEnum Enum>
constexpr bool is_named(Enum value) {
  return static_cast<std::size_t>(value) < names_of(value).names.size();
}

template <NamedEnum Enum>
constexpr std::string_view to_string(Enum value) {
  return is_named(value) ? names_of(value).names[static_cast<std::size_t>(value)] : "unknown";
}

template <NamedEnum Enum>
constexpr std::optional<Enum> parse_enum(std::string_view text) {
  constexpr auto kNames = names_of(Enum{}).names;
  const auto found = std::ranges::find(kNames, text);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<Enum>(found - kNames.begin());
}

// "none, relu, ...": what messages and help texts say is known.
template <NamedEnum Enum>
std::string known_names() {
  std::string text;
  for (const std::string_view name : names_of(Enum{}).names) text.append(text.empty() ? "" : ", ").append(name);
  return text;
}

}  // namespace burin
