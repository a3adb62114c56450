// Names that come from files: how they are matched and listed.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "ir/printable.h"

namespace burin {

// Shell patterns: * (any text, / included), ? and [..] (ranges; ! negates).
bool glob_match(const std::string& pattern, const std::string& name);
// No pattern matches all.
bool matches(const std::optional<std::string>& pattern, const std::string& name);

// "'a', 'b', 'c' and 12 more".
std::string listed(std::span<const std::string> names);

// Whether a file's name ends in `ending`, such as ".onnx", in capitals or not.
bool has_ending(std::string_view path, std::string_view ending);

}  // namespace burin
