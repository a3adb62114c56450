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

const std::vector<std::string> kNumbers = {"0", "1", "7", "1000", "2147483647"};

}  // namespace

TEST_CASE("no_plan_is_a_fault_of_burins_own") {
  const ScratchFolder folder;
  write_safetensors(folder / "w.safetensors", {TestLayer{.shape = {8, 6, 3, 3}, .extent = 9}});
  std::vector<std::string> plans = {
      "tile=1x1x1000", "tile=1000x1x1",        "tile=1x1000x1", "tile=1x2147483647x2147483647",
      "cluster=1x1",   "cluster=16x1",         "cluster=1x16",  "cluster=1000x1000",
      "cluster=2x2",   "splits=2,cluster=1x2", "tile=3x5x7",    "tile=4x9x9"};
  for (const char* key : {"groups", "splits", "stage", "buffers", "barrier", "ahead", "together", "promote"}) {
    for (const std::string& count : kNumbers) plans.push_back(std::string(key) + "=" + count);
  }
  for (const char* staging : {"staging=shared,", "staging=bulk,", "staging=direct,"}) {
    for (const char* plan : {"tile=4x9x9", "groups=7", "splits=7", "stage=1000", "buffers=1000", "ahead=2147483647",
                             "together=7", "splits=2,cluster=2x2"}) {
      plans.push_back(std::string(staging) + plan);
    }
  }
  for (const std::string& plan : plans) {
    check_users({"compile", folder / "w.safetensors", "--arch", "sm_90", "--plan", plan, "--dump-dir", folder / "d",
                 "--stop-after", "plan"});
  }
}

TEST_CASE("no_value_of_an_option_is_a_fault_of_burins_own") {
  const ScratchFolder folder;
  write_safetensors(folder / "w.safetensors", {TestLayer{.shape = {8, 6, 3, 3}, .extent = 9}});
  folder.write("m.onnx", branched_model().bytes());
  std::vector<std::string> values = kNumbers;
  for (const char* value :
       {"", "-1", "1e3", "nan", "1x1", "0,0,0,0", "99999x99999", "3x2147483647x2147483647", "1048576"}) {
    values.emplace_back(value);
  }
  for (const char* option :
       {"--batch", "--zero-threshold", "--max-extent", "--layer", "--kernels", "--arch", "--input-shape", "--pad"}) {
    for (const std::string& value : values) {
      check_users({"compile", folder / "w.safetensors", "--arch", "sm_90", "--dump-dir", folder / "d", "--stop-after",
                   "plan", option, value});
    }
  }
  for (const char* option : {"--batch", "--input-shape"}) {
    for (const std::string& value : values) {
      check_users({"inspect", folder / "m.onnx", "--simplify", "--memory", option, value});
    }
  }
}

TEST_CASE("no_number_of_an_edited_plan_is_a_fault_of_burins_own") {
  const ScratchFolder folder;
  write_safetensors(folder / "w.safetensors", {TestLayer{.shape = {8, 6, 3, 3}, .extent = 9}});
  const Arguments compile = {"compile", folder / "w.safetensors", "--arch", "sm_90", "--dump-dir", folder / "d"};
  for (const char* kind : {"baked", "dense"}) {
    Arguments planned = compile;
    planned.insert(planned.end(), {"--stop-after", "plan", "--kernels", kind});
    REQUIRE(run_burin(planned).exit_code == 0);
    const std::string plan = read_file(folder / "d/conv/30-plan.txt");
    constexpr std::size_t kLooked = 15;  // numbers: what is said of the kernel as a whole stands first
    std::size_t looked = 0, end = 0;
    for (std::size_t at = plan.find_first_of("0123456789"); at != std::string::npos && looked < kLooked;
         at = plan.find_first_of("0123456789", end), ++looked) {
      end = std::min(plan.find_first_not_of("0123456789", at), plan.size());
      for (const char* number : {"0", "1025", "2147483647"}) {
        std::string edited = plan;
        edited.replace(at, end - at, number);
        Arguments again = compile;
        again.insert(again.end(), {"--stop-after", "template", "--from", folder.write("edited.txt", edited)});
        check_users(again);
      }
    }
    CHECK(looked > 10);
  }
}
