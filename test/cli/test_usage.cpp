// What was typed wrong: exit code 2, one line that names it, and the nearest that would be right.

#include "test/catch.h"
#include "test/cli/program.h"

using namespace burin_test;
using burin_test::Contains;

namespace {

void check_usage_error(const std::vector<std::string>& arguments, const std::string& text) {
  const Outcome outcome = run_burin(arguments);
  CAPTURE(arguments, outcome.out, outcome.err);
  CHECK(outcome.exit_code == 2);
  CHECK(outcome.out.empty());
  CHECK_THAT(outcome.err, burin_test::StartsWith("burin: error: ") && Contains(text));
}

}  // namespace

TEST_CASE("help_goes_to_stdout_and_names_every_command") {
  const Outcome outcome = run_burin({"--help"});
  CHECK(outcome.exit_code == 0);
  CHECK(outcome.err.empty());
  for (const char* command : {"compile", "tune", "inspect", "run", "verify", "bench", "report", "study", "doctor"}) {
    CHECK_THAT(outcome.out, Contains(command));
    const Outcome help = run_burin({command, "--help"});
    CHECK(help.exit_code == 0);
    CHECK_THAT(help.out, Contains("--help"));
  }
}

TEST_CASE("version_is_one_line") {
  const Outcome outcome = run_burin({"--version"});
  CHECK(outcome.exit_code == 0);
  CHECK_THAT(outcome.out, burin_test::StartsWith("burin ") && burin_test::EndsWith("\n"));
}

TEST_CASE("no_command_shows_help_on_stderr") {
  const Outcome outcome = run_burin({});
  CHECK(outcome.exit_code == 2);
  CHECK(outcome.out.empty());
  CHECK_THAT(outcome.err, Contains("no command given") && Contains("inspect"));
}

TEST_CASE("unknown_command_suggests_the_nearest") {
  check_usage_error({"complie", "x"}, "there is no command 'complie'; did you mean 'compile'?");
  check_usage_error({"verfy"}, "did you mean 'verify'?");
  const Outcome outcome = run_burin({"frobnicate"});
  CHECK(outcome.exit_code == 2);
  CHECK_THAT(outcome.err, !Contains("did you mean"));
}

TEST_CASE("unknown_option_suggests_the_nearest") {
  check_usage_error({"compile", "x.npy", "--zero-treshold", "1"}, "did you mean '--zero-threshold'?");
  check_usage_error({"compile", "x.npy", "--zero-treshold=1"}, "did you mean '--zero-threshold'?");
  check_usage_error({"verify", "p", "--againts", "w"},
                    "burin verify has no option '--againts'; did you mean '--against'?");
  check_usage_error({"--versoin"}, "burin has no option '--versoin'; did you mean '--version'?");
  check_usage_error({"inspect", "-x", "y"}, "burin inspect has no option '-x'");
}

TEST_CASE("missing_arguments_are_named") {
  check_usage_error({"compile"}, "burin compile: ");
  check_usage_error({"verify", "p.burin"}, "--against is required");
  check_usage_error({"run", "p.burin", "--layer", "a", "--input", "x.npy"}, "--output is required");
  check_usage_error({"compile", "x.npy", "-o"}, "burin compile: ");
}

TEST_CASE("superfluous_arguments_are_named") { check_usage_error({"inspect", "a.burin", "b.burin"}, "b.burin"); }

TEST_CASE("an_option_given_twice_is_refused") {
  check_usage_error({"compile", "x.npy", "--arch", "sm_80", "--arch", "sm_90"}, "--arch");
}

TEST_CASE("values_that_cannot_be_are_named") {
  check_usage_error({"compile", "x.npy", "--batch", "0"}, "--batch '0'");
  check_usage_error({"compile", "x.npy", "--batch", "1,,2"}, "an item of the list is empty");
  check_usage_error({"compile", "x.npy", "--jobs", "many"}, "many");
  check_usage_error({"compile", "x.npy", "--layout", "nhwc"}, "--layout 'nhwc' is not one of nchw, nchw4");
  check_usage_error({"compile", "x.npy", "--layout", "nchw5"}, "did you mean 'nchw");
  check_usage_error({"compile", "x.npy", "--layout", ""}, "--layout ''");
  check_usage_error({"inspect", "x.npy", "--layout", "NCHW"}, "--layout 'NCHW' is not one of nchw, nchw4");
  check_usage_error({"compile", "x.npy", "--jobs", "-1"}, "--jobs");
  check_usage_error({"compile", "x.npy", "--zero-threshold", "-1", "--arch", "sm_90"}, "--zero-threshold");
  check_usage_error({"compile", "x.npy", "--zero-threshold", "nan", "--arch", "sm_90"}, "--zero-threshold");
  check_usage_error({"compile", "x.npy", "--activation", "rleu", "--arch", "sm_90"}, "--activation 'rleu'");
  check_usage_error({"compile", "x.onnx", "--quantized", "dorp", "--arch", "sm_90"}, "--quantized 'dorp'");
  check_usage_error({"compile", "x.npy", "--stop-after", "pln", "--dump-dir", "d"}, "did you mean 'plan'?");
  check_usage_error({"verify", "p", "--against", "w", "--batch", "1,2"}, "one batch size");
  check_usage_error({"verify", "p", "--against", "w", "--seed", "dice"}, "dice");
}

TEST_CASE("stop_after_without_dump_dir_would_have_no_result") {
  check_usage_error({"compile", "x.npy", "--stop-after", "plan"}, "--dump-dir");
}
