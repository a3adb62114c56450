// Values at the edge of what can be typed: whatever they are, they are the user's, so none is a fault of burin's own
// (exit code 70) and none is a crash.

#include "test/catch.h"
#include "test/cli/program.h"
#include "test/cli/small_model.h"
#include "test/cli/weights_file.h"

using namespace burin_test;

namespace {

using Arguments = std::vector<std::string>;

void check_users(const Arguments& arguments) {
  const Outcome outcome = run_burin_without_gpu(arguments);
  CAPTURE(arguments, outcome.exit_code, outcome.err);
  CHECK((outcome.exit_code >= 0 && outcome.exit_code <= 5));
}

// Each key of --plan with each of these, alone and where plans differ most.
const std::vector<std::string> kCounts = {"0", "1", "2", "3", "7", "33", "1000", "65536", "2147483647"};

}  // namespace

TEST_CASE("no_plan_is_a_fault_of_burins_own") {
  const ScratchFolder folder;
  write_safetensors(folder / "w.safetensors", {TestLayer{.shape = {8, 6, 3, 3}, .extent = 9}});
  std::vector<std::string> plans = {
      "tile=1x1x1000", "tile=1000x1x1",        "tile=1x1000x1", "tile=1x2147483647x2147483647",
      "cluster=1x1",   "cluster=16x1",         "cluster=1x16",  "cluster=1000x1000",
      "cluster=2x2",   "splits=2,cluster=1x2", "tile=3x5x7",    "tile=4x9x9"};
  for (const char* key : {"groups", "splits", "stage", "buffers", "barrier", "ahead", "together", "promote"}) {
    for (const std::string& count : kCounts) plans.push_back(std::string(key) + "=" + count);
  }
  for (const char* staging : {"", "staging=shared,", "staging=bulk,", "staging=direct,"}) {
    for (const std::string& plan : plans) {
      check_users({"compile", folder / "w.safetensors", "--arch", "sm_90", "--plan", staging + plan, "--dump-dir",
                   folder / "d", "--stop-after", "plan"});
    }
  }
}
