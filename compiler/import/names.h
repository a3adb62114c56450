// Names that come from files: how they are matched, suggested and shown.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace burin {

// The name in single quotes, fit for an error message: control characters escaped, cut where it is very long.
std::string in_quotes(std::string_view name);

// Text from a file or a library, without quotes, made fit the same way.
std::string printable(std::string_view text);

bool is_valid_utf8(std::string_view text);

// Shell patterns: * (any text, / included), ? and [..] (ranges; ! negates).
bool glob_match(const std::string& pattern, const std::string& name);

// The name nearest to `wanted`, or an empty string when none is near.
std::string nearest_name(std::string_view wanted, std::span<const std::string> names);

// "; the nearest is 'conv1'", or nothing.
std::string suggestion(std::string_view wanted, std::span<const std::string> names);

// "'a', 'b', 'c' and 12 more".
std::string listed(std::span<const std::string> names);

}  // namespace burin
