// Names that come from files and from people: how they are matched and listed, and which was meant.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

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

// Insertions, deletions, substitutions and swaps of neighbours, each of cost one.
int edit_distance(std::string_view a, std::string_view b);

// The nearest of `known`, if it is near enough to be meant: at most a third of its letters differ, or `typed` is a
// prefix of it. The first wins a tie.
std::optional<std::string> nearest(std::string_view typed, std::span<const std::string> known);

// `known`, what is most like `typed` first.
std::vector<std::string> nearest_first(std::string_view typed, std::vector<std::string> known);

// "; did you mean 'X'?" or nothing.
std::string did_you_mean(std::string_view typed, std::span<const std::string> known);

}  // namespace burin
