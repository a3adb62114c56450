// Names that come from files: how they are matched, suggested and listed.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "ir/printable.h"

namespace burin {

// Shell patterns: * (any text, / included), ? and [..] (ranges; ! negates).
bool glob_match(const std::string& pattern, const std::string& name);

// The name nearest to `wanted`, or an empty string when none is near.
std::string nearest_name(std::string_view wanted, std::span<const std::string> names);

// "; the nearest is 'conv1'", or nothing.
std::string suggestion(std::string_view wanted, std::span<const std::string> names);

// "'a', 'b', 'c' and 12 more".
std::string listed(std::span<const std::string> names);

}  // namespace burin
