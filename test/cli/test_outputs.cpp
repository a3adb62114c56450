// Where results go is looked at before any work: an impossible place fails at once, with exit code 2, and whatever
// happens, nothing half-written is left.
#include <sys/stat.h>
#include <unistd.h>

#include "compiler/cli/npy_tensor.h"
#include "compiler/reference.h"
#include "test/catch.h"
#include "test/cli/program.h"
#include "test/cli/small_model.h"
#include "test/cli/weights_file.h"
#include "test/skip.h"

using namespace burin_test;

namespace {

// Before any work: the input is not even looked at, for it is not there.
void check_refused(const std::vector<std::string>& arguments, const std::string& text) {
  const Outcome outcome = run_burin_without_gpu(arguments);
  CAPTURE(arguments, outcome.out, outcome.err);
  CHECK(outcome.exit_code == 2);
  CHECK(outcome.out.empty());
  CHECK_THAT(outcome.err, burin_test::StartsWith("burin: error: ") && Contains(text));
}

void compile(const ScratchFolder& folder) {
  write_safetensors(folder / "w.safetensors", {TestLayer{}});
  REQUIRE(run_burin({"compile", folder / "w.safetensors", "--arch", "sm_90", "-o", folder / "p.burin"}).exit_code == 0);
}

}  // namespace

TEST_CASE("compile_looks_at_its_output_before_it_reads_anything") {
  const ScratchFolder folder;
  folder.write("file", "");
  const auto refused = [&](const std::string& output, const std::string& text) {
    check_refused({"compile", "absent.onnx", "--arch", "sm_90", "-o", output}, text);
  };
  refused(folder / "absent/p.burin", "--output: cannot write " + (folder / "absent/p.burin") +
                                         ": there is no folder '" + (folder / "absent") + "'");
  refused(folder.path().string(), "it is a folder");
  refused(folder / "new/", "it is a folder");
  refused(folder / "file/p.burin", "cannot write");
  refused("/dev/null", "it is not a regular file");
  refused("/proc/p.burin", "cannot write /proc/p.burin");
  refused("", "the path is empty");
  CHECK(folder.entries() == std::vector<std::string>{"file"});
}

TEST_CASE("compile_looks_at_its_dump_folder_before_it_reads_anything") {
  const ScratchFolder folder;
  folder.write("file", "");
  const auto refused = [&](const std::string& option, const std::string& dump) {
    check_refused({"compile", "absent.onnx", "--arch", "sm_90", "-o", folder / "p.burin", option, dump},
                  option + ": cannot write " + dump);
  };
  for (const char* option : {"--dump-dir", "--cache"}) {
    refused(option, folder / "file");
    refused(option, folder / "file/deeper");
    refused(option, "/proc/dumps");
  }
  CHECK(folder.entries() == std::vector<std::string>{"file"});
}

TEST_CASE("a_folder_without_permission_takes_no_output") {
  if (::geteuid() == 0) BURIN_SKIP("root may write everywhere");
  const ScratchFolder folder;
  REQUIRE(::chmod(folder.path().c_str(), 0500) == 0);
  check_refused({"compile", "absent.onnx", "--arch", "sm_90", "-o", folder / "p.burin"}, "Permission denied");
  REQUIRE(::chmod(folder.path().c_str(), 0700) == 0);
}

TEST_CASE("the_default_output_is_looked_at_too") {
  const ScratchFolder folder;
  std::filesystem::create_directory(folder.path() / "net.burin");
  const Outcome outcome = run_burin({"compile", "net.onnx", "--arch", "sm_90"}, {}, folder.path());
  CHECK(outcome.exit_code == 2);
  CHECK_THAT(outcome.err, Contains("--output, by default: cannot write net.burin: it is a folder"));
}

TEST_CASE("an_input_is_never_overwritten") {
  const ScratchFolder folder;
  write_safetensors(folder / "w.safetensors", {TestLayer{}});
  const std::string before = read_file(folder / "w.safetensors");
  check_refused({"compile", folder / "w.safetensors", "--arch", "sm_90", "-o", folder / "./w.safetensors"},
                "is read by the same command, and would be overwritten");
  CHECK((read_file(folder / "w.safetensors") == before));
  compile(folder);
  check_refused({"bench", folder / "p.burin", "--json", folder / "p.burin"}, "would be overwritten");
}

TEST_CASE("run_looks_at_its_outputs_before_its_inputs") {
  const ScratchFolder folder;
  compile(folder);
  check_refused({"run", folder / "p.burin", "--layer", "conv", "--input", "absent.npy", "--output", folder / "a/y.npy",
                 "--device", "host"},
                "--output: cannot write " + (folder / "a/y.npy"));
  folder.write("two.onnx", model_of_two_inputs().bytes());
  REQUIRE(run_burin({"compile", folder / "two.onnx", "--arch", "sm_90", "-o", folder / "two.burin"}).exit_code == 0);
  const auto run_two = [&](const std::string& s, const std::string& r, const std::string& text) {
    check_refused({"run", folder / "two.burin", "--input", "a=a.npy", "--input", "b=b.npy", "--output", "s=" + s,
                   "--output", "r=" + r, "--device", "host"},
                  text);
  };
  run_two(folder / "s.npy", folder / "absent/r.npy", "there is no folder");
  run_two(folder / "y.npy", folder / "y.npy", "is named for two outputs");
  run_two(folder / "two.burin", folder / "r.npy", "would be overwritten");
}

TEST_CASE("bench_looks_at_its_output_before_it_reads_the_package") {
  check_refused({"bench", "absent.burin", "--json", "/absent/b.json"}, "--json: cannot write /absent/b.json");
}

TEST_CASE("dumps_leave_nothing_but_stages") {
  const ScratchFolder folder;
  write_safetensors(folder / "w.safetensors", {TestLayer{}});
  REQUIRE(run_burin({"compile", folder / "w.safetensors", "--arch", "sm_90", "-o", folder / "p.burin", "--dump-dir",
                     folder / "a/b"})
              .exit_code == 0);
  CHECK(folder.entries() == std::vector<std::string>{"a", "p.burin", "w.safetensors"});
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path() / "a")) {
    CAPTURE(entry.path().string());
    CHECK_FALSE(entry.path().filename().string().starts_with(".burin-"));
  }
}
