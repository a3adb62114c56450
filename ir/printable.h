// Text that comes from files and libraries, made fit for messages, and what counts as fit.
#pragma once

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

}  // namespace burin
