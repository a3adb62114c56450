// Tables for people: aligned columns, a header, units in the header, nothing that a terminal must understand.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "ir/program.h"

namespace burin {

class Table {
 public:
  // The title of each column; what begins with '>', as ">batch", stands on the right.
  explicit Table(std::vector<std::string> columns) : columns_(std::move(columns)) {}

  // One cell for each column.
  void add(std::vector<std::string> cells);
  // A row below a line: sums and means.
  void add_footer(std::vector<std::string> cells);
  // A column whose cells are all empty is left out. Lines end without blanks.
  std::string print() const;

 private:
  bool is_right(std::size_t column) const { return columns_[column].starts_with('>'); }
  std::string title(std::size_t column) const { return columns_[column].substr(is_right(column) ? 1 : 0); }

  std::vector<std::string> columns_;
  std::vector<std::vector<std::string>> rows_, footers_;
};

// 1234567 -> "1,234,567".
std::string with_separators(long long value);
// "0.4 kB", "12.3 kB", "1.2 MB"; powers of ten. Negative (not known): "-".
std::string bytes_text(long long bytes);
// The same, but empty for what is not known (negative).
std::string known_count(long long value);
std::string known_bytes(long long bytes);
// "4.21/5.03/6.00"
std::string times_text(std::initializer_list<double> microseconds);
// Microseconds with three significant digits: "4.21", "51.3", "1234".
std::string microseconds_text(double microseconds);
// 13010 -> "13.1".
std::string cuda_version_text(int version);
// The fastest kernel that was not chosen, behind the one that was: " (conv_baked 6.5 us)"; empty where there is none.
std::string runner_up_text(const std::vector<KernelOption>& options);
// fp32 goes without saying.
std::string precision_text(const std::string& precision);

}  // namespace burin
