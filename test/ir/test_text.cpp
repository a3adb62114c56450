#include "ir/text.h"

#include "test/catch.h"
#include "test/ir/random_layers.h"
#include "test/thrown.h"

using namespace burin;
using burin_test::error_of;

namespace {

std::vector<int> read_list(std::string_view text, std::size_t limit = 100) {
  const std::string line = "list: " + std::string(text);
  KeyValueText reader(line, "test");
  return reader.integers(reader.required("list"), limit);
}

template <typename Value>
Value value_of(KeyValueText&& text, std::string_view key) {
  Value value{};
  text.read(key, value);
  return value;
}

}  // namespace

TEST_CASE("text: integer lists print as ranges and read back") {
  CHECK(print_integers({}) == "none");
  CHECK(print_integers(std::vector<int>{4}) == "4");
  CHECK(print_integers(std::vector<int>{4, 5}) == "4,5");
  CHECK(print_integers(std::vector<int>{0, 1, 2, 3, 17}) == "0-3,17");
  CHECK(print_integers(std::vector<int>{3, 2, 1}) == "3,2,1");
  CHECK(read_list("0-3, 17") == std::vector<int>{0, 1, 2, 3, 17});
  CHECK(read_list("none").empty());
  CHECK(read_list("-3,-2--1") == std::vector<int>{-3, -2, -1});

  burin_test::Random random(7);
  for (int i = 0; i < 200; ++i) {
    std::vector<int> values;
    for (int n = random.integer(0, 40); n > 0; --n) values.push_back(random.integer(-5, 12));
    if (i % 2 == 0) std::sort(values.begin(), values.end());
    INFO("seed 7, case " << i << ": " << print_integers(values));
    CHECK(read_list(print_integers(values)) == values);
  }
}

TEST_CASE("text: faults in lists name the line") {
  CHECK(error_of([] { read_list("1,x"); }) == "test, line 1: 'x' of 'list' is not an integer");
  CHECK(error_of([] { read_list("1,,2"); }) == "test, line 1: '' of 'list' is not an integer");
  CHECK(error_of([] { read_list("9-3"); }) == "test, line 1: the range '9-3' runs backwards");
  CHECK(error_of([] { read_list("0-2000000000"); }) == "test, line 1: 'list' lists more than 100 values");
  CHECK(error_of([] { read_list("99999999999"); }) == "test, line 1: 99999999999 of 'list' does not fit 32 bits");
  CHECK(read_list("0-99").size() == 100);
  CHECK(error_of([] { read_list("0-99,3"); }) == "test, line 1: 'list' lists more than 100 values");
}

TEST_CASE("text: comments, blanks and line ends of any kind are skipped") {
  KeyValueText reader("# a comment\r\n\r\n  a :  1  # one\n\tb:2", "test");
  int a = 0, b = 0;
  reader.read("a", a);
  reader.read("b", b);
  CHECK((a == 1 && b == 2));
  reader.finish();
}

TEST_CASE("text: missing, doubled, unknown and malformed lines are faults") {
  CHECK(error_of([] { KeyValueText("a 1", "test"); }) == "test, line 1: 'a 1' is not of the form 'key: value'");
  CHECK(error_of([] { value_of<int>(KeyValueText("a: 1", "test"), "b"); }) == "test: there is no line 'b: ...'");
  CHECK(error_of([] { value_of<int>(KeyValueText("a: 1\n\na: 2", "test"), "a"); }) ==
        "test, line 3: 'a' was already given on line 1");
  CHECK(error_of([] { KeyValueText("\nz: 1", "test").finish(); }) == "test, line 2: unknown key 'z'");
  CHECK(error_of([] { value_of<bool>(KeyValueText("a: maybe", "test"), "a"); }) ==
        "test, line 1: 'maybe' of 'a' is neither 'yes' nor 'no'");
  CHECK(error_of([] {
          int a = 0, b = 0, c = 0;
          KeyValueText("a: 1x2", "test").read("a", std::tie(a, b, c));
        }) == "test, line 1: '1x2' of 'a' must be 3 integers with 'x' between them");
}

TEST_CASE("text: a number is all of its token") {
  CHECK(parse_number<int>("-17") == -17);
  CHECK(parse_number<double>("2.5e3") == 2500);
  for (const char* bad : {"", " 1", "1 ", "+1", "0x10", "1.5", "2147483648"}) {
    INFO(bad);
    CHECK_FALSE(parse_number<int>(bad));
  }
}
