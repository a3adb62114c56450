// A test that cannot run here says so visibly: BURIN_SKIP("reason") ends the test case, and ctest shows "Skipped" where
// all that it ran was skipped. The summary of a run names the others, too.
#pragma once

#include <string>

namespace burin_test {
void note_skip(const std::string& reason);
}

#define BURIN_SKIP(reason)         \
  do {                             \
    burin_test::note_skip(reason); \
    return;                        \
  } while (false)
