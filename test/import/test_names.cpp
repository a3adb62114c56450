#include "compiler/import/names.h"

#include "test/import/files.h"

using namespace burin;

TEST_CASE("names: glob") {
  CHECK(glob_match("*", "features.conv1"));
  CHECK(glob_match("features.*", "features.conv1"));
  CHECK(glob_match("*conv?", "features/conv1"));
  CHECK(glob_match("conv[1-3]", "conv2"));
  CHECK(!glob_match("conv[!1-3]", "conv2"));
  CHECK(!glob_match("conv", "conv1"));
  CHECK(!glob_match("", "conv1"));
}

TEST_CASE("names: what is shown has no control characters and an end") {
  CHECK(in_quotes("a\nb\x7f") == "'a\\x0ab\\x7f'");
  CHECK(in_quotes("\xc3\xa9") == "'\xc3\xa9'");
  CHECK(in_quotes("\xff") == "'\\xff'");
  CHECK(in_quotes(std::string(1000, 'x')).size() < 200);
  // Cut between characters, never inside one.
  std::string accents = "x";
  for (int i = 0; i < 200; ++i) accents += "\xc3\xa9";
  CHECK(is_valid_utf8(in_quotes(accents)));
}

TEST_CASE("names: UTF-8") {
  CHECK(is_valid_utf8("plain"));
  CHECK(is_valid_utf8("\xf0\x9f\x98\x80"));
  for (const std::string bad :
       {"\x80", "\xc3", "\xc0\xaf", "\xe0\x80\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xf8\x88\x80\x80\x80"}) {
    CHECK(!is_valid_utf8(bad));
  }
}

TEST_CASE("names: the nearest") {
  const std::vector<std::string> names = {"features.conv1.weight", "features.conv2.weight", "classifier.bias"};
  CHECK(nearest_name("features.conv3.weight", names) == "features.conv1.weight");
  CHECK(nearest_name("clasifier.bias", names) == "classifier.bias");
  CHECK(nearest_name("zzz", names).empty());
  CHECK(suggestion("zzz", names).empty());
  CHECK(suggestion("clasifier.bias", names) == "; the nearest is 'classifier.bias'");
}

TEST_CASE("names: lists end") {
  const std::vector<std::string> names(20, "n");
  CHECK(burin::listed(names) == "'n', 'n', 'n', 'n', 'n', 'n', 'n', 'n' and 12 more");
}
