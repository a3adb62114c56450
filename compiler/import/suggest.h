// "did you mean": the known name that is nearest to what was typed.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace burin {

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
