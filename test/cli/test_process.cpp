// What the process meets (signals: kill_at_random.py): streams that take nothing, limits, an assembler that refuses.
#include <filesystem>

#include "test/catch.h"
#include "test/cli/program.h"
#include "test/cli/weights_file.h"

using namespace burin_test;

namespace {

// `burin compile` of a small layer into `output`, behind `before` and with `redirections`, in a shell. What the cache
// has is not taken.
Outcome compile_in_shell(const ScratchFolder& folder, const std::string& output, const std::string& redirections,
                         const std::string& before = "") {
  return run_program({"sh", "-c",
                      before + " exec '" BURIN_PROGRAM "' compile w.safetensors --arch sm_90 --no-cache -o " + output +
                          " " + redirections},
                     {}, folder.path());
}

struct Prepared {
  Prepared() {
    write_safetensors(folder / "w.safetensors", {TestLayer{}});
    REQUIRE(compile_in_shell(folder, "normal.burin", "").exit_code == 0);
    normal = read_file(folder / "normal.burin");
  }
  ScratchFolder folder;
  std::string normal;
};

}  // namespace

TEST_CASE("process: a stderr that is closed or full costs the messages alone") {
  const Prepared prepared;
  for (const std::string& redirections : {"2>&-", "2>/dev/full", "<&- >&- 2>&-", "<&- 2>&-"}) {
    INFO(redirections);
    const Outcome outcome = compile_in_shell(prepared.folder, "x.burin", redirections);
    // What is compiled is said on stdout, which must work.
    CHECK(outcome.exit_code == (redirections.find(">&- ") == std::string::npos ? 0 : 2));
    CHECK(read_file(prepared.folder / "x.burin") == prepared.normal);
    std::filesystem::remove(prepared.folder / "x.burin");
  }
}

TEST_CASE("process: a limit on the size of files is an error that leaves nothing") {
  const Prepared prepared;
  const Outcome outcome = compile_in_shell(prepared.folder, "x.burin", "", "ulimit -f 1;");
  CHECK(outcome.exit_code == 2);
  CHECK_THAT(outcome.err, Contains("burin: error: cannot write x.burin: File too large"));
  CHECK(prepared.folder.entries() == std::vector<std::string>{"normal.burin", "w.safetensors"});
}

TEST_CASE("process: an assembler that refuses burin's PTX is not a fault of burin's own") {
  const Prepared prepared;
  const std::string assembler = prepared.folder.write(
      "ptxas",
      "#!/bin/sh\ncase \"$*\" in *--version*) echo 'Cuda compilation tools, release 99.9, V99.9.1'; exit 0;; esac\n"
      "echo 'ptxas error: no such instruction here' >&2\nexit 255\n");
  std::filesystem::permissions(assembler, std::filesystem::perms::owner_all);
  const Outcome outcome = run_burin({"compile", prepared.folder / "w.safetensors", "--arch", "sm_90", "--no-cache",
                                     "-o", prepared.folder / "x.burin"},
                                    {"BURIN_ASSEMBLER=ptxas", "BURIN_PTXAS=" + assembler});
  CHECK(outcome.exit_code == 4);
  CHECK_THAT(outcome.err, Contains("rejected the PTX for sm_90") && Contains("no such instruction here") &&
                              Contains("BURIN_ASSEMBLER=none packs PTX alone"));
  CHECK_FALSE(std::filesystem::exists(prepared.folder / "x.burin"));
}
