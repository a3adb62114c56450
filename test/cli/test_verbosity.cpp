// -q and -v: how much a command says on stderr. What it says on stdout stays the same.

#include "compiler/cli/npy_tensor.h"
#include "compiler/reference.h"
#include "test/catch.h"
#include "test/cli/program.h"
#include "test/cli/small_model.h"
#include "test/cli/weights_file.h"

using namespace burin_test;

namespace {

Outcome run_with(std::vector<std::string> arguments, const std::string& option) {
  if (!option.empty()) arguments.push_back(option);
  return run_burin_without_gpu(arguments);
}

std::vector<std::string> compile_two(const ScratchFolder& folder) {
  write_safetensors(folder / "w.safetensors",
                    {TestLayer{.name = "a"}, TestLayer{.name = "b", .shape = {6, 8, 1, 1}, .pad = 0}});
  return {"compile", folder / "w.safetensors", "-o", folder / "p.burin", "--no-cache"};  // without --arch: a note
}

}  // namespace

TEST_CASE("quiet_leaves_out_notes_and_progress_but_not_errors") {
  const ScratchFolder folder;
  const std::vector<std::string> compile = compile_two(folder);
  const Outcome usual = run_with(compile, "");
  CHECK_THAT(usual.err, Contains("burin: note: no GPU found"));
  for (const char* option : {"-q", "--quiet"}) {
    const Outcome quiet = run_with(compile, option);
    CHECK(quiet.exit_code == 0);
    CHECK(quiet.err.empty());
    CHECK(quiet.out == usual.out);
  }
  const Outcome failed = run_with({"inspect", folder / "absent.npy"}, "-q");
  CHECK(failed.exit_code == 3);
  CHECK_THAT(failed.err, Contains("burin: error: "));
  const std::vector<std::string> verify = {"verify", folder / "p.burin", "--against", folder / "w.safetensors"};
  CHECK_THAT(run_with(verify, "").err, Contains("using the host executor"));
  CHECK(run_with(verify, "-q").err.empty());
}

TEST_CASE("verbose_has_a_line_for_each_kernel") {
  const ScratchFolder folder;
  const std::vector<std::string> compile = compile_two(folder);
  const Outcome usual = run_with(compile, "");
  CHECK_THAT(usual.err, !Contains("burin: compiling"));  // of short work nothing is said
  for (const char* option : {"-v", "--verbose"}) {
    const Outcome verbose = run_with(compile, option);
    CAPTURE(verbose.err);
    CHECK(verbose.exit_code == 0);
    CHECK(verbose.out == usual.out);
    CHECK_THAT(verbose.err, Contains("burin: compiling: planned ") && Contains("(2 of 2)\n"));
    CHECK_THAT(verbose.err, Contains("burin: compiling: a b1 (") && Contains("burin: compiling: b b1 ("));
  }
  const Outcome verified = run_with({"verify", folder / "p.burin", "--against", folder / "w.safetensors"}, "-v");
  CHECK_THAT(verified.err, Contains("burin: verifying: a b1 (") && Contains("burin: verifying: b b1 ("));
  CHECK_THAT(run_with({"inspect", folder / "w.safetensors"}, "-v").err,
             Contains("burin: planning: b b1 (") && Contains("(2 of 2)"));
}

TEST_CASE("verbose_has_a_line_for_each_step_of_a_network") {
  const ScratchFolder folder;
  folder.write("m.onnx", branched_model().bytes());
  REQUIRE(run_burin({"compile", folder / "m.onnx", "--arch", "sm_90", "-o", folder / "p.burin"}).exit_code == 0);
  const Outcome verified =
      run_with({"verify", folder / "p.burin", "--against", folder / "m.onnx", "--device", "host", "--layers"}, "-v");
  CAPTURE(verified.err);
  CHECK(verified.exit_code == 0);
  CHECK_THAT(verified.err, Contains("burin: verifying: conv1 (1 of ") && Contains("burin: verifying: softmax ("));
  burin::write_npy(folder / "x.npy", {2, 3, 12, 12}, burin::random_tensor(2 * 3 * 12 * 12, 1));
  const Outcome ran =
      run_with({"run", folder / "p.burin", "--input", folder / "x.npy", "--output", folder / "y.npy"}, "-v");
  CHECK_THAT(ran.err, Contains("burin: read " + (folder / "x.npy") + ": 2 images of input 'x'"));
}

TEST_CASE("every_command_knows_quiet_and_verbose") {
  for (const char* command : {"compile", "inspect", "run", "verify", "bench", "doctor"}) {
    const Outcome help = run_burin({command, "--help"});
    CHECK_THAT(help.out, Contains("-q,--quiet") && Contains("-v,--verbose"));
  }
  const Outcome both = run_burin({"doctor", "-q", "-v"});
  CHECK(both.exit_code == 2);
  CHECK_THAT(both.err, Contains("--quiet excludes --verbose"));
}
