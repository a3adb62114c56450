// What is said of the time that is left.

#include "compiler/cli/console.h"
#include "test/catch.h"

using burin::remaining_text;

TEST_CASE("console: what is left to wait follows from the share that is done, in steps of five seconds") {
  CHECK(remaining_text(10, 0.5) == "about 10 s left");
  CHECK(remaining_text(10, 0.4) == "about 15 s left");
  CHECK(remaining_text(30, 0.2) == "about 2 min 0 s left");
  CHECK(remaining_text(100, 0.41) == "about 2 min 25 s left");
}

TEST_CASE("console: nothing is said while little is known, or nothing is left") {
  CHECK(remaining_text(1, 0.5).empty());
  CHECK(remaining_text(10, 0.01).empty());
  CHECK(remaining_text(10, 1).empty());
}
