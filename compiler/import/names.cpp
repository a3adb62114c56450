#include "compiler/import/names.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace burin {
namespace {

constexpr std::size_t kListedNames = 8;          // of a list in a message
constexpr std::size_t kComparedNames = 5000;     // suggestions: edit distances that are computed at most
constexpr std::size_t kComparedNameBytes = 256;  // suggestions: longer names are not compared

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, diagonal + 1, row[j] + 1});
    }
  }
  return row.back();
}

}  // namespace

bool glob_match(const std::string& pattern, const std::string& name) {
  return ::fnmatch(pattern.c_str(), name.c_str(), FNM_NOESCAPE) == 0;
}

std::string nearest_name(std::string_view wanted, std::span<const std::string> names) {
  if (wanted.size() > kComparedNameBytes) return {};
  std::string nearest;
  // A third of the letters may differ: beyond that a suggestion is noise.
  std::size_t best = std::max<std::size_t>(wanted.size() / 3, 1) + 1;
  for (const std::string& name : names.first(std::min(names.size(), kComparedNames))) {
    if (name.size() > kComparedNameBytes) continue;
    const std::size_t distance = edit_distance(wanted, name);
    if (distance < best) {
      best = distance;
      nearest = name;
    }
  }
  return nearest;
}

std::string suggestion(std::string_view wanted, std::span<const std::string> names) {
  const std::string nearest = nearest_name(wanted, names);
  return nearest.empty() ? std::string() : "; the nearest is " + in_quotes(nearest);
}

std::string listed(std::span<const std::string> names) {
  std::string text;
  const std::size_t shown = std::min(names.size(), kListedNames);
  for (std::size_t i = 0; i < shown; ++i) text += (i == 0 ? "" : ", ") + in_quotes(names[i]);
  return names.size() > shown ? fmt::format("{} and {} more", text, names.size() - shown) : text;
}

}  // namespace burin
