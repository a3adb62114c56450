// Text that comes from files and libraries, made fit for messages, and what counts as fit.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace burin {

bool is_utf8(std::string_view text);
bool is_plain_text(std::string_view text);  // UTF-8 without control characters: it may go to a terminal

inline constexpr std::size_t kPrintableBytes = 160;

// What is not plain text as \x1b; cut between characters to at most `limit` bytes and "...".
std::string printable(std::string_view text, std::size_t limit = kPrintableBytes);

// The same in single quotes, for names.
std::string in_quotes(std::string_view name);

inline constexpr std::size_t kPrintedNumbers = 16;

// "1,2,3"; of more than so many, the first and how many there are: "1,2,...,16,... (1000 in all)".
template <typename Numbers>
std::string numbers_text(const Numbers& numbers, std::string_view separator = ",") {
  const std::span all(numbers);
  const auto shown = all.first(std::min(all.size(), kPrintedNumbers));
  std::string text = fmt::format("{}", fmt::join(shown, separator));
  if (all.size() > shown.size()) text += fmt::format("{}... ({} in all)", separator, all.size());
  return text;
}

}  // namespace burin
