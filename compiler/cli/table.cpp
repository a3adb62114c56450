#include "compiler/cli/table.h"

#include <algorithm>
#include <cmath>

#include "ir/error.h"
#include "ir/precision.h"

namespace burin {
namespace {

// Columns that a UTF-8 text takes.
int display_width(const std::string& text) {
  // Continuation bytes of UTF-8 take no column.
  return static_cast<int>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

}  // namespace

void Table::add(std::vector<std::string> cells) {
  BURIN_CHECK(cells.size() == columns_.size(), "a table of {} columns got {} cells", columns_.size(), cells.size());
  rows_.push_back(std::move(cells));
}

void Table::add_footer(std::vector<std::string> cells) {
  BURIN_CHECK(cells.size() == columns_.size(), "a table of {} columns got {} cells", columns_.size(), cells.size());
  footers_.push_back(std::move(cells));
}

std::string Table::print() const {
  std::vector<int> widths(columns_.size(), 0);
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    for (const auto& row : rows_) widths[i] = std::max(widths[i], display_width(row[i]));
    if (widths[i] == 0) continue;  // nothing to show: left out
    for (const auto& row : footers_) widths[i] = std::max(widths[i], display_width(row[i]));
    widths[i] = std::max(widths[i], display_width(title(i)));
  }
  std::string text;
  int line_width = 0;
  const auto add_line = [&](auto&& cell) {
    std::string line;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (widths[i] == 0) continue;
      const std::string value = cell(i);
      const std::string blanks(static_cast<std::size_t>(widths[i] - display_width(value)), ' ');
      if (!line.empty()) line += "  ";
      line += is_right(i) ? blanks + value : value + blanks;
    }
    line_width = std::max(line_width, display_width(line));
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  };
  add_line([&](std::size_t i) { return title(i); });
  const std::string rule(static_cast<std::size_t>(line_width), '-');
  text += rule + "\n";
  for (const auto& row : rows_) add_line([&](std::size_t i) { return row[i]; });
  if (!footers_.empty()) text += rule + "\n";
  for (const auto& row : footers_) add_line([&](std::size_t i) { return row[i]; });
  return text;
}

std::string with_separators(long long value) {
  const std::string digits = fmt::format("{}", value < 0 ? -value : value);
  std::string text = value < 0 ? "-" : "";
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

std::string bytes_text(long long bytes) {
  if (bytes < 0) return "-";
  const double kilobytes = static_cast<double>(bytes) / 1e3;
  return kilobytes < 1e3 ? fmt::format("{:.1f} kB", kilobytes) : fmt::format("{:.2f} MB", kilobytes / 1e3);
}

std::string known_count(long long value) { return value < 0 ? "" : with_separators(value); }
std::string known_bytes(long long bytes) { return bytes < 0 ? "" : bytes_text(bytes); }

std::string microseconds_text(double microseconds) {
  if (!std::isfinite(microseconds) || microseconds < 0) return "-";
  if (microseconds < 10) return fmt::format("{:.2f}", microseconds);
  if (microseconds < 100) return fmt::format("{:.1f}", microseconds);
  return fmt::format("{:.0f}", microseconds);
}

std::string times_text(std::initializer_list<double> microseconds) {
  std::string text;
  for (const double us : microseconds) text += (text.empty() ? "" : "/") + microseconds_text(us);
  return text;
}

std::string cuda_version_text(int version) {
  constexpr int kMajor = 1000, kMinor = 10;
  return fmt::format("{}.{}", version / kMajor, version % kMajor / kMinor);
}

std::string runner_up_text(const std::vector<KernelOption>& options) {
  if (options.size() < 2) return {};
  const auto next = std::ranges::min_element(options.begin() + 1, options.end(), {}, &KernelOption::us);
  return fmt::format(" ({})", describe(std::vector{*next}));
}

std::string precision_text(const std::string& precision) {
  return precision == to_string(Precision::fp32) ? std::string() : precision;
}

}  // namespace burin
