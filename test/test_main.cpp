#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>

#include <cstdio>

#include "test/skip.h"

namespace {
int skips = 0;
constexpr int kSkipExitCode = 77;  // what ctest's SKIP_RETURN_CODE expects
}  // namespace

void burin_test::note_skip(const std::string& reason) {
  ++skips;
  std::fprintf(stdout, "SKIPPED: %s\n", reason.c_str());
}

int main(int argc, char** argv) {
  const int failed = Catch::Session().run(argc, argv);
  return failed == 0 && skips > 0 ? kSkipExitCode : failed;
}
