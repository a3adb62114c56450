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

TEST_CASE("names: lists end") {
  const std::vector<std::string> names(20, "n");
  CHECK(burin::listed(names) == "'n', 'n', 'n', 'n', 'n', 'n', 'n', 'n' and 12 more");
}
