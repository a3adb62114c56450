#include "ir/printable.h"

#include <vector>

#include "ir/error.h"
#include "test/catch.h"

using namespace burin;

TEST_CASE("printable: UTF-8 is checked to the letter") {
  for (const char* good : {"", "a", "\xc2\x80", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xf0\x90\x80\x80", "\xf0\x9f\x98\x80",
                           "\xf4\x8f\xbf\xbf"}) {
    CHECK(is_utf8(good));
  }
  // lone continuation, overlong forms, surrogate, beyond U+10FFFF, cut short
  for (const char* bad :
       {"\x80", "\xc0\x80", "\xc0\xaf", "\xc1\xbf", "\xe0\x80\xaf", "\xe0\x9f\xbf", "\xf0\x8f\xbf\xbf", "\xed\xa0\x80",
        "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xf8\x88\x80\x80\x80", "\xc3", "\xe2\x82", "\xf0\x90\x80", "a\xff"}) {
    CHECK_FALSE(is_utf8(bad));
  }
}

TEST_CASE("printable: plain text is UTF-8 without control characters") {
  CHECK(is_plain_text("conv1 \xc3\xa9"));
  for (const char* bad : {"a\nb", "\x1b[31m", "\x7f", "\xff"}) CHECK_FALSE(is_plain_text(bad));
  CHECK_FALSE(is_plain_text(std::string_view("a\0b", 3)));
}

TEST_CASE("printable: what cannot be shown is escaped") {
  CHECK(printable("plain \xc3\xa9") == "plain \xc3\xa9");
  CHECK(printable("a\x1b[31m\n\x7f") == "a\\x1b[31m\\x0a\\x7f");
  CHECK(printable("\xff\xc3\xa9\xc3") == "\\xff\xc3\xa9\\xc3");
  CHECK(printable(std::string_view("\0", 1)) == "\\x00");
  CHECK(in_quotes("a\nb") == "'a\\x0ab'");
  CHECK(in_quotes("") == "''");
}

TEST_CASE("printable: long text is cut between characters") {
  CHECK(printable(std::string(kPrintableBytes, 'x')) == std::string(kPrintableBytes, 'x'));
  CHECK(printable(std::string(kPrintableBytes + 1, 'x')) == std::string(kPrintableBytes, 'x') + "...");
  CHECK(printable("x\xc3\xa9\xc3\xa9", 4) == "x\xc3\xa9...");
  CHECK(printable("ab\n", 5) == "ab...");
}

TEST_CASE("printable: of many numbers the first are shown") {
  CHECK(numbers_text(std::vector<int>{}) == "");
  CHECK(numbers_text(std::vector<int>{3, 1, 2}, "x") == "3x1x2");
  CHECK(numbers_text(std::vector<std::int64_t>(kPrintedNumbers, 7)) == "7,7,7,7,7,7,7,7,7,7,7,7,7,7,7,7");
  CHECK(numbers_text(std::vector<std::int64_t>(1'000'000, 7)) ==
        "7,7,7,7,7,7,7,7,7,7,7,7,7,7,7,7,... (1000000 in all)");
}

TEST_CASE("printable: an error has an end") {
  const std::string most(kMaxErrorBytes, 'a');
  CHECK(most == Error(ErrorKind::bad_input, most).what());
  const std::string more = std::string(kMaxErrorBytes - 1, 'a') + "\xc3\xa4" + "bc";
  CHECK(std::string(kMaxErrorBytes - 1, 'a') + "... (4 more bytes)" == Error(ErrorKind::bad_input, more).what());
}
