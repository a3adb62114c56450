#include "compiler/import/names.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>

namespace burin {
namespace {

constexpr std::size_t kListedNames = 8;  // of a list in a message

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

}  // namespace burin
