
#include "compiler/import/names.h"
#include "test/catch.h"

using namespace burin;

TEST_CASE("edit_distance_counts_single_edits") {
  CHECK(edit_distance("", "") == 0);
  CHECK(edit_distance("", "abc") == 3);
  CHECK(edit_distance("abc", "abc") == 0);
  CHECK(edit_distance("abc", "abd") == 1);
  CHECK(edit_distance("abc", "abcd") == 1);
  CHECK(edit_distance("abc", "bc") == 1);
  CHECK(edit_distance("kitten", "sitting") == 3);
}

TEST_CASE("edit_distance_counts_a_swap_as_one") {
  CHECK(edit_distance("verfiy", "verify") == 1);
  CHECK(edit_distance("ca", "ac") == 1);
}

TEST_CASE("nearest_finds_what_was_meant") {
  const std::vector<std::string> known = {"--batch", "--layer", "--zero-threshold", "--stop-after"};
  CHECK(nearest("--bacth", known) == "--batch");
  CHECK(nearest("--layers", known) == "--layer");
  CHECK(nearest("--zero-treshold", known) == "--zero-threshold");
  CHECK(nearest("--zero", known) == "--zero-threshold");  // a prefix
}

TEST_CASE("nearest_is_silent_when_nothing_is_near") {
  const std::vector<std::string> known = {"--batch", "--layer"};
  CHECK_FALSE(nearest("--quantise", known));
  CHECK_FALSE(nearest("", known));
  CHECK_FALSE(nearest("x", {}));
  CHECK(did_you_mean("--quantise", known).empty());
}

TEST_CASE("names_of_files_are_suggested_too") {
  const std::vector<std::string> names = {"features.conv1.weight", "features.conv2.weight", "classifier.bias"};
  CHECK(nearest("features.conv3.weight", names) == "features.conv1.weight");
  CHECK(did_you_mean("clasifier.bias", names) == "; did you mean 'classifier.bias'?");
  CHECK(did_you_mean("zzz", names).empty());
  CHECK(did_you_mean(std::string(300, 'n'), std::vector<std::string>{std::string(300, 'n')}).empty());
}

TEST_CASE("lists_begin_with_what_is_nearest") {
  CHECK(nearest_first("imgae", {"mask", "tokens", "image"}) == std::vector<std::string>{"image", "mask", "tokens"});
  CHECK(nearest_first(std::string(300, 'x'), {"b", "a"}) == std::vector<std::string>{"b", "a"});
}
