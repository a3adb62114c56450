#include "compiler/import/names.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>

namespace burin {
namespace {

constexpr std::size_t kListedNames = 8;  // of a list in a message

// Names come from files: what is compared is bounded.
constexpr std::size_t kComparedNames = 5000, kComparedNameBytes = 256;

}  // namespace

bool glob_match(const std::string& pattern, const std::string& name) {
  return ::fnmatch(pattern.c_str(), name.c_str(), FNM_NOESCAPE) == 0;
}

bool matches(const std::optional<std::string>& pattern, const std::string& name) {
  return !pattern || glob_match(*pattern, name);
}

bool has_ending(std::string_view path, std::string_view ending) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return path.size() > ending.size() && std::ranges::equal(path.substr(path.size() - ending.size()), ending, {}, lower);
}

std::string listed(std::span<const std::string> names) {
  std::string text;
  const std::size_t shown = std::min(names.size(), kListedNames);
  for (std::size_t i = 0; i < shown; ++i) text += (i == 0 ? "" : ", ") + in_quotes(names[i]);
  return names.size() > shown ? fmt::format("{} and {} more", text, names.size() - shown) : text;
}

int edit_distance(std::string_view a, std::string_view b) {
  // Three rows of the table of prefixes: a swap of neighbours looks two rows back.
  std::vector<int> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = static_cast<int>(j);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = static_cast<int>(i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const int substitution = last[j - 1] + (a[i - 1] != b[j - 1]);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, substitution});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

std::optional<std::string> nearest(std::string_view typed, std::span<const std::string> known) {
  std::optional<std::string> best;
  int best_distance = 0;
  if (typed.size() > kComparedNameBytes) return best;
  for (const std::string& name : known.first(std::min(known.size(), kComparedNames))) {
    if (name.size() > kComparedNameBytes) continue;
    const bool prefix = typed.size() >= 2 && name.starts_with(typed);
    const int distance = prefix ? 0 : edit_distance(typed, name);
    const int allowed = static_cast<int>(std::max<std::size_t>(1, name.size() / 3));
    if (distance <= allowed && (!best || distance < best_distance)) {
      best = name;
      best_distance = distance;
    }
  }
  return best;
}

std::vector<std::string> nearest_first(std::string_view typed, std::vector<std::string> known) {
  const auto distance = [&](const std::string& name) {
    const bool compared = typed.size() <= kComparedNameBytes && name.size() <= kComparedNameBytes;
    return compared ? edit_distance(typed, name) : static_cast<int>(kComparedNameBytes);
  };
  if (known.size() <= kComparedNames) std::ranges::stable_sort(known, {}, distance);
  return known;
}

std::string did_you_mean(std::string_view typed, std::span<const std::string> known) {
  const std::optional<std::string> name = nearest(typed, known);
  return name ? "; did you mean " + in_quotes(*name) + "?" : "";
}

}  // namespace burin
