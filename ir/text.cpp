#include "ir/text.h"

#include <limits>

namespace burin {
namespace {

constexpr std::string_view kBlanks = " \t\r";

}  // namespace

std::string_view trim(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t end = text.find(separator);
    parts.push_back(trim(text.substr(0, end)));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::vector<std::string_view> words(std::string_view text) {
  std::vector<std::string_view> found;
  for (;;) {
    const std::size_t first = text.find_first_not_of(kBlanks);
    if (first == std::string_view::npos) return found;
    text.remove_prefix(first);
    const std::size_t end = text.find_first_of(kBlanks);
    found.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return found;
    text.remove_prefix(end);
  }
}

KeyValueText::KeyValueText(std::string_view text, std::string what) : what_(std::move(what)) {
  int number = 0;
  for (std::string_view raw : split(text, '\n')) {
    ++number;
    const std::string_view line = trim(raw.substr(0, raw.find('#')));
    if (line.empty()) continue;
    const std::size_t colon = line.find(':');
    TextLine entry{number, trim(line.substr(0, colon)), {}, false};
    if (colon == std::string_view::npos) fail_at(entry, "'{}' is not of the form 'key: value'", line);
    entry.value = trim(line.substr(colon + 1));
    lines_.push_back(entry);
  }
}

const TextLine* KeyValueText::find(std::string_view key) {
  TextLine* found = nullptr;
  for (TextLine& line : lines_) {
    if (line.key != key) continue;
    if (found != nullptr) fail_at(line, "'{}' was already given on line {}", key, found->number);
    found = &line;
    line.taken = true;
  }
  return found;
}

const TextLine& KeyValueText::required(std::string_view key) {
  const TextLine* line = find(key);
  if (line == nullptr) fail(ErrorKind::bad_input, "{}: there is no line '{}: ...'", what_, key);
  return *line;
}

std::vector<const TextLine*> KeyValueText::with_first_word(std::string_view word) {
  std::vector<const TextLine*> found;
  for (TextLine& line : lines_) {
    if (line.key.size() <= word.size() || !line.key.starts_with(word)) continue;
    if (kBlanks.find(line.key[word.size()]) == std::string_view::npos) continue;
    line.taken = true;
    found.push_back(&line);
  }
  return found;
}

void KeyValueText::finish() const {
  for (const TextLine& line : lines_) {
    if (!line.taken) fail_at(line, "unknown key '{}'", line.key);
  }
}

std::int64_t KeyValueText::integer(const TextLine& line, std::string_view token) const {
  const auto number = parse_number<std::int64_t>(token);
  if (!number) fail_at(line, "'{}' of '{}' is not an integer", token, line.key);
  return *number;
}

int KeyValueText::integer32(const TextLine& line, std::string_view token) const {
  const std::int64_t number = integer(line, token);
  if (number < std::numeric_limits<int>::min() || number > std::numeric_limits<int>::max()) {
    fail_at(line, "{} of '{}' does not fit 32 bits", number, line.key);
  }
  return static_cast<int>(number);
}

void KeyValueText::read(const TextLine& line, bool& value) const {
  value = line.value == "yes";
  if (!value && line.value != "no") fail_at(line, "'{}' of '{}' is neither 'yes' nor 'no'", line.value, line.key);
}

double KeyValueText::real(const TextLine& line, std::string_view token) const {
  const auto number = parse_number<double>(token);
  if (!number) fail_at(line, "'{}' of '{}' is not a number", token, line.key);
  return *number;
}

float KeyValueText::real32(const TextLine& line, std::string_view token) const {
  const auto number = parse_number<float>(token);
  if (!number) fail_at(line, "'{}' of '{}' is not a number of float32", token, line.key);
  return *number;
}

std::vector<int> KeyValueText::extents(const TextLine& line, std::size_t count) const {
  const std::vector<std::string_view> parts = split(line.value, 'x');
  if (parts.size() != count) {
    fail_at(line, "'{}' of '{}' must be {} integers with 'x' between them", line.value, line.key, count);
  }
  std::vector<int> values;
  for (std::string_view part : parts) values.push_back(integer32(line, part));
  return values;
}

std::vector<int> KeyValueText::integers(const TextLine& line, std::size_t limit) const {
  std::vector<int> values;
  if (line.value == "none") return values;
  for (std::string_view part : split(line.value, ',')) {
    const std::size_t dash = part.find('-', 1);  // a sign may stand first
    const int first = integer32(line, trim(part.substr(0, dash)));
    const int last = dash == std::string_view::npos ? first : integer32(line, trim(part.substr(dash + 1)));
    if (last < first) fail_at(line, "the range '{}' runs backwards", part);
    if (static_cast<std::size_t>(std::int64_t{last} - first) >= limit - values.size()) {
      fail_at(line, "'{}' lists more than {} values", line.key, limit);
    }
    for (std::int64_t value = first; value <= last; ++value) values.push_back(static_cast<int>(value));
  }
  return values;
}

std::string print_integers(std::span<const int> values) {
  if (values.empty()) return "none";
  std::string text;
  for (std::size_t begin = 0; begin < values.size();) {
    std::size_t end = begin + 1;
    while (end < values.size() && std::int64_t{values[end]} == std::int64_t{values[end - 1]} + 1) ++end;
    if (!text.empty()) text += ',';
    // Two neighbours read better as "4,5"; a negative value would make the dash ambiguous.
    if (end - begin < 3 || values[begin] < 0) end = begin + 1;
    text += end - begin == 1 ? fmt::format("{}", values[begin]) : fmt::format("{}-{}", values[begin], values[end - 1]);
    begin = end;
  }
  return text;
}

}  // namespace burin
