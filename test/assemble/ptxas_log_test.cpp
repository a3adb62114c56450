#include "compiler/assemble/ptxas_log.h"
#include "test/catch.h"

using burin::AssemblerUsage;
using burin::parse_ptxas_log;

TEST_CASE("ptxas_log: an entry and the functions it calls") {
  const AssemblerUsage usage = parse_ptxas_log(
      "ptxas info    : 0 bytes gmem\n"
      "ptxas info    : Compiling entry function 'k' for 'sm_90'\n"
      "ptxas info    : Function properties for k\n"
      "    24 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
      "ptxas info    : Used 72 registers, used 1 barriers, 24 bytes cumulative stack size\n"
      "ptxas info    : Compile time = 107.276 ms\n"
      "ptxas info    : Function properties for slice0\n"
      "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
      "ptxas info    : Function properties for slice1\n"
      "    96 bytes stack frame, 92 bytes spill stores, 100 bytes spill loads\n");
  REQUIRE(usage.functions.size() == 3);
  CHECK(usage.registers("k") == 72);
  CHECK(usage.registers("slice1") == -1);
  CHECK(usage.spill_bytes() == 192);
  CHECK(usage.stack_bytes() == 96);
}

TEST_CASE("ptxas_log: nvJitLink compiles functions before the entry and repeats the entry when it has linked") {
  const AssemblerUsage usage = parse_ptxas_log(
      "ptxas info    : Function properties for slice0\n"
      "ptxas         .     16 bytes stack frame, 12 bytes spill stores, 8 bytes spill loads\n"
      "ptxas info    : Compiling entry function 'k' for 'sm_90'\n"
      "ptxas info    : Function properties for k\n"
      "ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
      "ptxas info    : Used 24 registers, used 0 barriers\n"
      "info    : 0 bytes gmem\n"
      "info    : Function properties for 'k':\n"
      "info    : used 85 registers, used 1 barriers, 16 stack, 1024 bytes smem, 0 bytes lmem\n");
  REQUIRE(usage.functions.size() == 2);
  CHECK(usage.registers("k") == 85);
  CHECK(usage.spill_bytes() == 20);
  CHECK(usage.stack_bytes() == 16);
}

TEST_CASE("ptxas_log: two entries keep their own registers") {
  const AssemblerUsage usage = parse_ptxas_log(
      "ptxas info    : Compiling entry function 'a' for 'sm_80'\n"
      "ptxas info    : Function properties for a\n"
      "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
      "ptxas info    : Used 10 registers, 360 bytes cmem[0]\r\n"
      "ptxas info    : Compiling entry function 'b' for 'sm_80'\n"
      "ptxas info    : Function properties for b\n"
      "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
      "ptxas info    : Used 255 registers, 360 bytes cmem[0]\n");
  CHECK(usage.registers("a") == 10);
  CHECK(usage.registers("b") == 255);
  CHECK(usage.registers("c") == -1);
  CHECK(usage.spill_bytes() == 0);
}

TEST_CASE("ptxas_log: what is not said is -1, not 0") {
  for (const char* log : {"", "\n\n", "ptxas warning : something else", "bytes stack frame, bytes spill stores",
                          "Function properties for ", "Compiling entry function '"}) {
    const AssemblerUsage usage = parse_ptxas_log(log);
    INFO(log);
    CHECK(usage.spill_bytes() == -1);
    CHECK(usage.stack_bytes() == -1);
    CHECK(usage.registers("k") == -1);
  }
}

TEST_CASE("ptxas_log: a number beyond an int is the largest int") {
  const AssemblerUsage usage = parse_ptxas_log(
      "ptxas info    : Function properties for k\n"
      "    99999999999999999999 bytes stack frame, 2147483647 bytes spill stores, 5 bytes spill loads\n");
  CHECK(usage.stack_bytes() == 2147483647);
  CHECK(usage.spill_bytes() == 2147483647);
}

TEST_CASE("ptxas_log: time grows with the text, however many functions it names") {
  std::string log;
  constexpr int kFunctions = 300'000;
  for (int i = 0; i < kFunctions; ++i) {
    log += "Function properties for f" + std::to_string(i) +
           "\n 8 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n";
  }
  CHECK(parse_ptxas_log(log).functions.size() == kFunctions);
}
