// What is said of long work, and of the time that is left.

#include "compiler/cli/console.h"
#include "test/catch.h"

using burin::ProgressLines;
using burin::remaining_text;
using std::chrono::milliseconds;
using std::chrono::seconds;

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

TEST_CASE("console: lines of progress are ten seconds apart, and short work has none") {
  const ProgressLines::Time start{};
  ProgressLines lines("compiling", start);
  lines.update(1, 8, "conv1 b1", 0.2);
  CHECK_FALSE(lines.due(start));
  CHECK_FALSE(lines.due(start + milliseconds(9999)));
  CHECK(lines.due(start + seconds(10)) == "compiling: 1 of 8 after 10 s, about 40 s left: conv1 b1");
  lines.update(2, 8, "conv2 b1", 0.5);
  CHECK_FALSE(lines.due(start + seconds(11)));
  CHECK(lines.next() == start + seconds(20));
  CHECK(lines.due(start + seconds(83)) == "compiling: 2 of 8 after 1 min 23 s, about 1 min 25 s left: conv2 b1");
  CHECK_FALSE(lines.due(start + seconds(84)));
}

TEST_CASE("console: a line of progress says what is known, and comes even where no step ends") {
  const ProgressLines::Time start{};
  ProgressLines lines("verifying", start);
  CHECK(lines.due(start + seconds(10)) == "verifying: after 10 s");
  lines.update(0, 0, "batch 8 runs", {});
  CHECK(lines.due(start + seconds(20)) == "verifying: after 20 s: batch 8 runs");
  lines.update(3, 9, "conv1", {});
  lines.printed(start + seconds(29));
  CHECK_FALSE(lines.due(start + seconds(30)));
  CHECK(lines.due(start + seconds(39)) == "verifying: 3 of 9 after 39 s: conv1");
}
