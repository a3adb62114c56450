
#include <filesystem>
#include <fstream>
#include <thread>

#include "compiler/assemble/assemble.h"
#include "compiler/assemble/assembler.h"
#include "compiler/assemble/run_program.h"
#include "ir/cubin_info.h"
#include "ir/error.h"
#include "test/assemble/kernels.h"
#include "test/catch.h"
#include "test/scoped_variable.h"
#include "test/skip.h"
#include "test/thrown.h"

using burin::AssembledKernel;
using burin::ErrorKind;
using burin_test::Contains;

namespace {

namespace fs = std::filesystem;

// Both assemblers have open() and assemble(); a test case runs for each.
struct WithNvJitLink {
  static auto open() { return burin_test::open_nvjitlink(); }
  static constexpr const char* kName = "nvJitLink";
};
struct WithPtxas {
  static auto open() { return burin_test::open_ptxas(); }
  static constexpr const char* kName = "ptxas";
};

template <typename Assembler>
AssembledKernel build(const Assembler& assembler, const std::string& ptx, const std::string& arch,
                      const std::string& symbol) {
  return burin::describe_assembled(assembler.assemble(ptx, arch), symbol);
}

template <typename Function>
burin_test::Thrown error_of(Function function) {
  const auto thrown = burin_test::thrown_by(function);
  REQUIRE(thrown);
  return *thrown;
}

std::string script(const burin::TemporaryFolder& folder, const std::string& body, const char* name = "ptxas") {
  const fs::path path = fs::path(folder.path()) / name;
  std::ofstream(path) << "#!/bin/sh\nif [ \"$1\" = --version ]; then echo 'Cuda compilation tools, release 12.9, "
                         "V12.9.86'; exit 0; fi\n"
                      << body << "\n";
  fs::permissions(path, fs::perms::owner_all);
  return path.string();
}

std::unique_ptr<burin::Ptxas> open_script(const burin::TemporaryFolder& folder, const std::string& body) {
  std::string why;
  auto opened = burin::Ptxas::open({script(folder, body)}, why);
  INFO(why);
  REQUIRE(opened);
  return opened;
}

}  // namespace

#define OPEN_OR_SKIP(assembler)            \
  const auto assembler = TestType::open(); \
  if (!(assembler)) BURIN_SKIP(std::string("no ") + TestType::kName + " found")

TEMPLATE_TEST_CASE("assembler: a tiny kernel", "", WithNvJitLink, WithPtxas) {
  OPEN_OR_SKIP(assembler);
  for (const char* arch : {"sm_80", "sm_90"}) {
    const AssembledKernel kernel = build(*assembler, burin_test::tiny_ptx(), arch, "tiny");
    INFO(arch << "\n" << kernel.log);
    CHECK(kernel.registers > 0);
    CHECK(kernel.registers <= 32);
    CHECK(kernel.spill_bytes == 0);
    CHECK(kernel.stack_bytes == 0);
    CHECK(kernel.code_bytes >= 4 * 16);
    CHECK(kernel.code_bytes % 16 == 0);
    CHECK(kernel.cubin.substr(1, 3) == "ELF");
  }
}

TEMPLATE_TEST_CASE("assembler: spills are reported", "", WithNvJitLink, WithPtxas) {
  OPEN_OR_SKIP(assembler);
  const AssembledKernel kernel = build(*assembler, burin_test::spilling_ptx(), "sm_80", "spilling");
  INFO(kernel.log);
  CHECK(kernel.registers == 32);
  CHECK(kernel.spill_bytes >= 2 * 4 * (100 - 32));
  CHECK(kernel.stack_bytes >= 4 * (100 - 32));
}

TEMPLATE_TEST_CASE("assembler: functions called from a switch count", "", WithNvJitLink, WithPtxas) {
  OPEN_OR_SKIP(assembler);
  // The entry itself needs a handful of registers; its functions keep 20 and more values alive.
  const AssembledKernel easy =
      build(*assembler, burin_test::switch_ptx(3, 20, ".maxntid 128, 1, 1"), "sm_80", "chooser");
  INFO(easy.log);
  CHECK(easy.registers >= 20);
  CHECK(easy.spill_bytes == 0);
  CHECK(easy.stack_bytes == 0);
  CHECK(easy.code_bytes >= 2 * 16 * (20 + 21 + 22));

  const AssembledKernel tight = build(*assembler, burin_test::switch_ptx(3, 60, ".maxnreg 40"), "sm_80", "chooser");
  INFO(tight.log);
  CHECK(tight.registers == 40);
  CHECK(tight.spill_bytes >= 2 * 4 * (20 + 21 + 22));
  CHECK(tight.stack_bytes >= 4 * 22);
}

TEMPLATE_TEST_CASE("assembler: the block size caps the registers of called functions", "", WithNvJitLink, WithPtxas) {
  OPEN_OR_SKIP(assembler);
  const AssembledKernel kernel =
      build(*assembler, burin_test::switch_ptx(2, 100, ".maxntid 1024, 1, 1"), "sm_80", "chooser");
  INFO(kernel.log);
  CHECK(kernel.registers <= 64);
}

TEMPLATE_TEST_CASE("assembler: a syntax error carries the assembler's line", "", WithNvJitLink, WithPtxas) {
  OPEN_OR_SKIP(assembler);
  const auto [kind, text] =
      error_of([&] { assembler->assemble(burin_test::tiny_ptx() + "\nnonsense here;\n", "sm_90"); });
  CHECK(kind == ErrorKind::bad_input);
  CHECK_THAT(text, Contains(TestType::kName) && Contains("sm_90") && Contains("Parsing error near 'nonsense'"));
}

TEMPLATE_TEST_CASE("assembler: an architecture that it does not know", "", WithNvJitLink, WithPtxas) {
  OPEN_OR_SKIP(assembler);
  const auto [kind, text] = error_of([&] { assembler->assemble(burin_test::tiny_ptx(), "sm_999"); });
  CHECK(kind == ErrorKind::unsupported);
  CHECK_THAT(text, Contains(TestType::kName) && Contains("sm_999") && Contains("--arch"));
}

TEMPLATE_TEST_CASE("assembler: a name that is no architecture", "", WithNvJitLink, WithPtxas) {
  OPEN_OR_SKIP(assembler);
  for (const char* arch : {"", "sm_", "90", "sm_9x", "sm_90 -o /tmp/x", "compute_90"}) {
    const auto [kind, text] = error_of([&] { assembler->assemble(burin_test::tiny_ptx(), arch); });
    CHECK(kind == ErrorKind::unsupported);
    CHECK_THAT(text, Contains(fmt::format("'{}'", arch)));
  }
}

TEMPLATE_TEST_CASE("assembler: PTX of a later architecture or version", "", WithNvJitLink, WithPtxas) {
  OPEN_OR_SKIP(assembler);
  const auto older = error_of([&] { assembler->assemble(burin_test::tiny_ptx(), "sm_75"); });
  CHECK(older.kind == ErrorKind::unsupported);
  CHECK_THAT(older.text, Contains("sm_75"));
  std::string later = burin_test::tiny_ptx();
  later.replace(later.find("8.0"), 3, "99.0");
  const auto version = error_of([&] { assembler->assemble(later, "sm_80"); });
  CHECK(version.kind == ErrorKind::unsupported);
  CHECK_THAT(version.text, Contains("99.0"));
}

TEMPLATE_TEST_CASE("assembler: no text, or a text with a zero byte", "", WithNvJitLink, WithPtxas) {
  OPEN_OR_SKIP(assembler);
  CHECK_THROWS_WITH(assembler->assemble("", "sm_90"), Contains("no PTX"));
  CHECK_THROWS_WITH(assembler->assemble(burin_test::tiny_ptx() + '\0', "sm_90"), Contains("zero byte"));
}

TEMPLATE_TEST_CASE("assembler: an entry that is not there", "", WithNvJitLink, WithPtxas) {
  OPEN_OR_SKIP(assembler);
  CHECK_THROWS_WITH(build(*assembler, burin_test::tiny_ptx(), "sm_90", "huge"),
                    Contains("no entry 'huge'") && Contains("tiny"));
}

TEMPLATE_TEST_CASE("assembler: the same text gives the same bytes, also from several threads", "", WithNvJitLink,
                   WithPtxas) {
  OPEN_OR_SKIP(assembler);
  const std::string ptx = burin_test::switch_ptx(3, 40, ".maxntid 256, 1, 1");
  const AssembledKernel first = build(*assembler, ptx, "sm_90", "chooser");
  constexpr int kThreads = 4;
  constexpr int kRounds = 3;
  std::vector<std::string> faults(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      try {
        for (int round = 0; round < kRounds; ++round) {
          const AssembledKernel again = build(*assembler, ptx, "sm_90", "chooser");
          if (again.cubin != first.cubin) faults[t] = "another cubin";
          if (again.log != first.log) faults[t] = "another log:\n" + again.log + "\ninstead of\n" + first.log;
        }
      } catch (const std::exception& error) {
        faults[t] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& fault : faults) CHECK(fault == "");
}

TEST_CASE("assembler: no temporary files stay behind") {
  const auto ptxas = burin_test::open_ptxas();
  if (!ptxas) BURIN_SKIP("no ptxas found");
  const burin::TemporaryFolder folder;
  {
    const burin_test::ScopedVariable temporary("TMPDIR", folder.path());
    ptxas->assemble(burin_test::tiny_ptx(), "sm_90");
    error_of([&] { ptxas->assemble("nonsense", "sm_90"); });
  }
  CHECK(fs::is_empty(folder.path()));
}

TEST_CASE("assembler: what was found assembles") {
  const burin::AssemblerInfo& info = burin::find_assembler();
  if (info.kind == burin::AssemblerInfo::Kind::none) {
    CHECK_THAT(info.note, Contains("nvidia-nvjitlink") || Contains("BURIN_ASSEMBLER"));
    const auto [kind, text] = error_of([] { burin::assemble(burin_test::tiny_ptx(), "sm_90", "tiny"); });
    CHECK(kind == ErrorKind::unsupported);
    BURIN_SKIP("no assembler found");
  }
  CHECK_FALSE(info.path.empty());
  CHECK_FALSE(info.version.empty());
  CHECK(burin::assemble(burin_test::tiny_ptx(), "sm_90", "tiny").registers > 0);
}

TEST_CASE("nvjitlink: a library that is not there, and one that lacks functions") {
  std::string why;
  CHECK_FALSE(burin::NvJitLink::open({}, why));
  CHECK_FALSE(burin::NvJitLink::open({"/nowhere/libnvJitLink.so.13", BURIN_FAKE_NVJITLINK}, why));
  CHECK_THAT(why, Contains("/nowhere/libnvJitLink.so.13") && Contains("lacks nvJitLinkDestroy") &&
                      Contains("nvJitLinkGetLinkedCubin"));
}

TEST_CASE("ptxas: programs that are not ptxas") {
  std::string why;
  CHECK_FALSE(burin::Ptxas::open({"/nowhere/ptxas", "/bin/false", "/bin/true"}, why));
  CHECK_THAT(why, Contains("cannot start /nowhere/ptxas") && Contains("/bin/false --version: exit code 1") &&
                      Contains("/bin/true --version"));
}

TEST_CASE("ptxas: a program that dies says so") {
  const burin::TemporaryFolder folder;
  const auto ptxas = open_script(folder, "kill -9 $$");
  CHECK(ptxas->version() == "12.9");
  const auto [kind, text] = error_of([&] { ptxas->assemble(burin_test::tiny_ptx(), "sm_90"); });
  CHECK(kind == ErrorKind::device);
  CHECK_THAT(text, Contains("signal 9") && Contains("--jobs"));
}

TEST_CASE("ptxas: a program that crashes is not short of memory") {
  const burin::TemporaryFolder folder;
  const auto ptxas = open_script(folder, "kill -11 $$");
  try {
    ptxas->assemble(burin_test::tiny_ptx(), "sm_90");
    FAIL("it went on");
  } catch (const burin::AssemblerCrash& crash) {
    CHECK(crash.kind() == ErrorKind::device);
    CHECK_THAT(std::string(crash.what()), Contains("signal 11") && !Contains("--jobs"));
  }
}

TEST_CASE("ptxas: a program that writes nothing, or nonsense") {
  const burin::TemporaryFolder folder;
  const auto silent = open_script(folder, "exit 0");
  CHECK_THROWS_WITH(silent->assemble(burin_test::tiny_ptx(), "sm_90"), Contains("wrote no cubin"));
  const auto nonsense = open_script(folder, "echo nonsense > kernel.cubin");
  CHECK_THROWS_WITH(build(*nonsense, burin_test::tiny_ptx(), "sm_90", "tiny"), Contains("cubin"));
}

TEST_CASE("ptxas: it is given the text and the options") {
  const burin::TemporaryFolder folder;
  const auto ptxas = open_script(folder, "echo \"$@\"; cat kernel.ptx; exit 3");
  CHECK_FALSE(ptxas->links());
  const auto [kind, text] = error_of([&] { ptxas->assemble("the text", "sm_86"); });
  CHECK_THAT(text, Contains("-v -O3 -arch=sm_86 -o kernel.cubin kernel.ptx") && Contains("the text"));
}

TEST_CASE("ptxas: nvlink beside it links what was compiled apart") {
  const burin::TemporaryFolder folder;
  script(folder, "echo linked \"$@\"; cat kernel.o; exit 3", "nvlink");
  const auto ptxas = open_script(folder, "echo compiled \"$@\" > kernel.o");
  CHECK(ptxas->links());
  const auto [kind, text] = error_of([&] { ptxas->assemble(".entry f() .maxnreg 72 {}", "sm_86"); });
  CHECK_THAT(text, Contains("nvlink 12.9") && Contains("linked -arch=sm_86 -o kernel.cubin kernel.o") &&
                       Contains("compiled -v -O3 -arch=sm_86 -o kernel.o kernel.ptx -c -maxrregcount=72"));
}

TEST_CASE("assembler: a long log is cut in the error") {
  const auto [kind, text] = error_of([] { burin::fail_assembly("ptxas", "sm_90", std::string(100000, 'x')); });
  CHECK(text.size() < 10000);
  CHECK_THAT(text, Contains("96000 more characters"));
}

TEST_CASE("cubin_info: agrees with ptxas") {
  const auto ptxas = burin_test::open_ptxas();
  if (!ptxas) BURIN_SKIP("no ptxas found");
  const burin::CubinInfo info = burin::read_cubin(ptxas->assemble(burin_test::spilling_ptx(), "sm_80").cubin);
  REQUIRE(info.find("spilling") != nullptr);
  CHECK(info.find("spilling")->entry);
  CHECK(info.find("spilling")->registers == 32);
  CHECK(info.find("spilling")->frame_bytes > 0);
  CHECK(info.compute == 80);
  CHECK(info.find("spilling")->parameters == std::vector<burin::CubinParameter>{{0, 8}});
  CHECK(info.find("spilling")->shared_bytes == 0);
  CHECK(info.code_bytes >= 200 * 16);  // 100 loads and 100 stores at least
}
