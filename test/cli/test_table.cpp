
#include "compiler/cli/table.h"
#include "ir/error.h"
#include "test/catch.h"

using namespace burin;

TEST_CASE("table_aligns_columns") {
  Table table({"layer", ">us"});
  table.add({"conv1", "4.2"});
  table.add({"a", "12345"});
  CHECK(table.print() ==
        "layer     us\n"
        "------------\n"
        "conv1    4.2\n"
        "a      12345\n");
}

TEST_CASE("table_leaves_out_a_column_without_cells") {
  Table table({"layer", "empty", ">n"});
  table.add({"a", "", "1"});
  CHECK(table.print() ==
        "layer  n\n"
        "--------\n"
        "a      1\n");
}

TEST_CASE("table_footer_stands_below_a_line_and_utf8_takes_one_column") {
  Table table({"x", "y"});
  table.add({"\xC3\xA4\xC3\xB6", "1"});
  table.add_footer({"sum", "1"});
  CHECK(table.print() ==
        "x    y\n"
        "------\n"
        "\xC3\xA4\xC3\xB6   1\n"
        "------\n"
        "sum  1\n");
}

TEST_CASE("table_refuses_a_row_of_another_width") {
  Table table({"x", "y"});
  CHECK_THROWS_AS(table.add({"only one"}), Error);
}

TEST_CASE("numbers_for_people") {
  CHECK(with_separators(0) == "0");
  CHECK(with_separators(999) == "999");
  CHECK(with_separators(1000) == "1,000");
  CHECK(with_separators(-1234567) == "-1,234,567");
  CHECK(bytes_text(-1) == "-");
  CHECK(bytes_text(123) == "0.1 kB");
  CHECK(bytes_text(2'500'000) == "2.50 MB");
  CHECK(microseconds_text(4.213) == "4.21");
  CHECK(microseconds_text(51.34) == "51.3");
  CHECK(microseconds_text(1234.4) == "1234");
  CHECK(microseconds_text(-1) == "-");
}
