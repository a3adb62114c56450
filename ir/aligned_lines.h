// Rows of cells as lines with aligned columns, without blanks at their ends: what prints a noun as a table.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <vector>

namespace burin {

// A cell wider than `widest` does not push all others to the right.
template <std::size_t kColumns>
std::string aligned_lines(const std::vector<std::array<std::string, kColumns>>& rows, std::size_t widest) {
  std::array<std::size_t, kColumns> widths{};
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < kColumns; ++i) widths[i] = std::max(widths[i], std::min(widest, row[i].size()));
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < kColumns; ++i) line += fmt::format("{:<{}}  ", row[i], widths[i]);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace burin
