// Modules that a person edited: what they do is done in a sandbox. Each case is a way in that must stay closed.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <limits>

#include "compiler/assemble/assemble.h"
#include "compiler/execute/edited_kernel.h"
#include "compiler/reentry.h"
#include "ir/error.h"
#include "test/assemble/kernels.h"
#include "test/catch.h"
#include "test/host/kernel_text.h"
#include "test/sandbox/small_limits.h"
#include "test/scratch_folder.h"
#include "test/thrown.h"

using namespace burin;
using namespace burin_test;
using burin_test::Contains;

namespace {

Kernel row_kernel() {
  Kernel kernel;
  kernel.symbol = "k";
  kernel.op = "row";
  kernel.form = form_of_row_kernel();
  return kernel;
}

std::vector<float> run_edited(const std::string& text, const SandboxLimits& limits) {
  const Kernel kernel = row_kernel();
  EditedKernel edited("edited.ll", text, kernel, limits);
  std::vector<float> input(kCols, 2.0F), output(kCols, std::numeric_limits<float>::quiet_NaN());
  edited.run({.batch = 1, .input = input, .output = output});
  return output;
}

// The error when the module is compiled for the host and run.
std::string refusal(const std::string& body, const std::string& others = "",
                    const SandboxLimits& limits = kLittleMemory) {
  const std::string text = text_of_kernel(body, others);
  return BURIN_THROWN(bad_input, run_edited(text, limits)).text;
}

// The error when PTX is made of it.
std::string refusal_of_ptx(const std::string& text, const SandboxLimits& limits = kLittleMemory) {
  Reentry reentry;
  reentry.path = "edited.ll";
  reentry.module_text = text;
  return BURIN_THROWN(bad_input, ptx_of_edited(reentry, "k", "sm_90", "layer row", limits)).text;
}

// The error when nvJitLink has this PTX.
std::string refusal_of_assembler(const std::string& ptx, const SandboxLimits& limits = kLittleMemory) {
  Reentry reentry;
  reentry.path = "edited.ptx";
  reentry.ptx = ptx;
  return BURIN_THROWN(bad_input, assemble_edited(reentry, ptx, "sm_80", "tiny", "layer row", limits)).text;
}

std::string repeated(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

const std::string kCrash = "in its sandbox it was ended by signal 11 (Segmentation fault)";
const std::string kForbidden = "in its sandbox it tried a system call that is forbidden there";

}  // namespace

TEST_CASE("edited kernel: what is harmless runs, any number of times") {
  const Kernel kernel = row_kernel();
  EditedKernel edited("edited.ll", text_of_kernel(R"(
  %x = call float @burin_dev_global_load(ptr %in, i64 %off)
  %y2 = fmul float %x, 3.0
  call void @burin_dev_global_store(ptr %out, i64 %off, float %y2)
  ret void)"),
                      kernel, kLittleMemory);
  for (const float value : {1.0F, 2.0F}) {
    const std::vector<float> input(kCols, value);
    std::vector<float> output(kCols, std::numeric_limits<float>::quiet_NaN());
    edited.run({.batch = 1, .input = input, .output = output});
    CHECK(output == std::vector<float>(kCols, 3 * value));
  }
}

TEST_CASE("edited kernel: faults that the executor detects stay what they are") {
  const auto fault = BURIN_THROWN(
      verification,
      run_edited(text_of_kernel("  %far = add i64 %off, 4096\n"
                                "  call void @burin_dev_global_store(ptr %out, i64 %far, float 1.0)\n  ret void"),
                 kLittleMemory));
  CHECK_THAT(fault.text, burin_test::StartsWith("kernel 'k', block (0, 0), thread 0"));
}

TEST_CASE("edited kernel: memory of its process") {
  CHECK_THAT(refusal("  store volatile i32 1, ptr null\n  ret void"),
             Contains("edited.ll, ") && Contains("row") && Contains(kCrash));
  CHECK_THAT(refusal("  %x = load volatile float, ptr %in\n  ret void"), Contains(kCrash));
  CHECK_THAT(refusal("  %f = inttoptr i64 4096 to ptr\n  call void %f()\n  ret void"), Contains(kCrash));
}

TEST_CASE("edited kernel: a tail call whose frame is gone") {
  CHECK_THAT(refusal("  %a = alloca ptr\n  store volatile ptr null, ptr %a\n  tail call void @f(ptr %a)\n  ret void",
                     "define internal void @f(ptr %p) noinline {\n  %q = load volatile ptr, ptr %p\n"
                     "  store volatile i32 1, ptr %q\n  ret void\n}"),
             Contains(kCrash));
  CHECK_THAT(refusal("  %a = alloca ptr\n  store volatile ptr null, ptr %a\n"
                     "  musttail call void @f(ptr %a, ptr %a, ptr %a, ptr %a, ptr %a, i32 0)\n  ret void",
                     "define internal void @f(ptr %p, ptr %q, ptr %r, ptr %s, ptr %t, i32 %u) noinline {\n"
                     "  %v = load volatile ptr, ptr %p\n  store volatile i32 1, ptr %v\n  ret void\n}"),
             Contains(kCrash));
}

TEST_CASE("edited kernel: a vector index that is poison") {
  CHECK_THAT(refusal(R"(
  %high = or disjoint i32 %t, 65536
  %wide = shl nuw nsw i32 %high, 14
  %index = lshr exact i32 %wide, 1
  %v = insertelement <4 x float> <float 1.0, float 2.0, float 3.0, float 4.0>, float 5.0, i32 %index
  %x = extractelement <4 x float> %v, i32 %index
  %bits = fptoui float %x to i64
  %p = inttoptr i64 %bits to ptr
  store volatile i32 1, ptr %p
  ret void)"),
             Contains(kCrash));
}

TEST_CASE("edited kernel: parameters that are copied") {
  CHECK_THAT(refusal("  %x = call float @burin_dev_exp2(ptr byval([1000000 x i8]) %in)\n  ret void",
                     "declare float @burin_dev_exp2(ptr byval([1000000 x i8]))"),
             Contains("edited.ll: ") && Contains("Symbols not found: [ burin_dev_exp2 ]"));
  CHECK_THAT(refusal("  call void @f(ptr byval([4096 x i8]) %in)\n  ret void",
                     "define internal void @f(ptr byval([4096 x i8]) %p) noinline {\n  ret void\n}"),
             Contains(kCrash));
}

TEST_CASE("edited kernel: functions that are no primitives, or have other types") {
  CHECK_THAT(refusal("  %x = call i32 @system(ptr %in)\n  ret void", "declare i32 @system(ptr)"),
             Contains("the host cannot compile it: Symbols not found: [ system ]"));
  CHECK_THAT(
      refusal(
          "  %x = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n  %z = call i32 @burin_dev_broadcast(i32 %x)\n  ret void",
          "declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()"),
      Contains("edited.ll, ") && Contains("Cannot select"));
  CHECK_THAT(refusal("  call void @f()\n  ret void",
                     "define internal void @f() {\n  call void @g()\n  ret void\n}\n"
                     "define internal void @g() {\n  call void @f()\n  ret void\n}"),
             Contains("edited.ll: ") && Contains("is recursive"));
}

TEST_CASE("edited kernel: expressions and types without end") {
  constexpr int kDeep = 200000;
  const std::string steps =
      "getelementptr (i8, ptr " + repeated("getelementptr (i8, ptr ", kDeep) + "null" + repeated(", i64 1)", kDeep + 1);
  CHECK_THAT(refusal_of_ptx(text_of_kernel("  store volatile i32 1, ptr " + steps + "\n  ret void")), Contains(kCrash));
  const std::string type = repeated("[1 x ", kDeep) + "i8" + repeated("]", kDeep);
  CHECK_THAT(refusal_of_ptx(text_of_kernel("  %x = load volatile " + type + ", ptr null\n  ret void")),
             Contains(kCrash));
  std::string chain = "  %g0 = getelementptr i8, ptr null, i64 1\n";
  constexpr int kLong = 5 * kDeep;  // a fast machine compiles a fifth of it within a second
  for (int i = 1; i <= kLong; ++i) chain += fmt::format("  %g{} = getelementptr i8, ptr %g{}, i64 1\n", i, i - 1);
  chain += fmt::format("  store volatile i32 1, ptr %g{}\n  ret void", kLong);
  CHECK_THAT(refusal_of_ptx(text_of_kernel(chain), kOneSecond),
             Contains(kCrash) || Contains("took more than 1 s") || Contains("needed more than"));
}

TEST_CASE("edited kernel: tables and stacks of gigabytes") {
  CHECK_THAT(BURIN_THROWN(unsupported, run_edited(text_of_kernel("  %a = alloca [2000000000 x i8]\n"
                                                                 "  store volatile i8 1, ptr %a\n  ret void"),
                                                  kLittleMemory))
                 .text,
             Contains("bytes of stack per thread on the host"));
  BURIN_NEEDS_MEMORY_LIMIT();
  const std::string use = "  %x = load volatile i8, ptr getelementptr (i8, ptr @big, i64 2000000000)\n  ret void";
  const std::string too_much = "in its sandbox it needed more than 512 MiB of memory";
  const std::string zeros = "@big = internal constant [4000000000 x i8] zeroinitializer";
  CHECK_THAT(refusal(use, zeros), Contains(too_much));
  const std::string after_one =
      "@big = internal constant {i8, [4000000000 x i8]} {i8 1, [4000000000 x i8] zeroinitializer}";
  CHECK_THAT(refusal(use, after_one), Contains(too_much));
  CHECK_THAT(refusal_of_ptx(text_of_kernel(use, after_one)), Contains(too_much));
}

TEST_CASE("edited kernel: an endless loop") {
  CHECK_THAT(refusal("  br label %again\nagain:\n  store volatile i32 1, ptr @v\n  br label %again",
                     "@v = internal global i32 0", kOneSecond),
             Contains("edited.ll, ") && Contains("in its sandbox it took more than 1 s"));
}

TEST_CASE("edited kernel: system calls") {
  const ScratchFolder folder;
  const std::string file = folder / "written";
  // The sandbox is a fork, so the C library lies where it lies here.
  const auto address = [](auto* function) { return reinterpret_cast<std::uintptr_t>(function); };
  struct Call {
    const char* name;
    std::uintptr_t function;
    std::string arguments;
  };
  const std::string path = fmt::format("ptr inttoptr (i64 {} to ptr)", address(file.c_str()));
  for (const Call& call :
       {Call{"creat", address(::creat), path + ", i32 384"},
        Call{"open", address(static_cast<int (*)(const char*, int, ...)>(::open)), path + ", i32 0"},
        Call{"socket", address(::socket), "i32 2, i32 1, i32 0"},
        Call{"connect", address(::connect), "i32 3, ptr null, i32 0"}, Call{"fork", address(::fork), ""},
        Call{"execv", address(::execv), path + ", ptr null"}, Call{"kill", address(::kill), "i32 1, i32 0"}}) {
    INFO(call.name);
    CHECK_THAT(refusal(fmt::format("  %f = inttoptr i64 {} to ptr\n  %x = call i32 %f({})\n  ret void", call.function,
                                   call.arguments)),
               Contains("edited.ll, ") && Contains(kForbidden));
  }
  CHECK_FALSE(std::filesystem::exists(file));
}

TEST_CASE("edited kernel: what LLVM's code generator for PTX refuses") {
  CHECK_THAT(refusal_of_ptx(text_of_kernel("  call void asm sideeffect \"nothing\", \"{rax}\"(i64 1)\n  ret void")),
             Contains("edited.ll, layer row: "));
  CHECK_THAT(refusal_of_ptx("this is no module"), Contains("edited.ll, line 1"));
}

TEST_CASE("edited kernel: nvJitLink reads its PTX in a sandbox") {
  if (find_assembler().kind != AssemblerInfo::Kind::nvjitlink) BURIN_SKIP("no nvJitLink here");
  Reentry reentry;
  reentry.path = "edited.ptx";
  const AssembledKernel assembled = assemble_edited(reentry, tiny_ptx(), "sm_80", "tiny", "layer row", kLittleMemory);
  CHECK(assembled.cubin == assemble(tiny_ptx(), "sm_80", "tiny").cubin);
  CHECK(assembled.registers > 0);

  CHECK_THAT(refusal_of_assembler("this is no PTX"),
             Contains("edited.ptx: nvJitLink ") && Contains("rejected the PTX"));
  CHECK_THAT(refusal_of_assembler(kPtxHeader + ".visible .entry other() { ret; }"),
             Contains("edited.ptx: ") && Contains("no entry 'tiny'; its entries: other"));
  // Each of so many values is needed at the end: this takes minutes.
  const std::string endless =
      kPtxHeader + ".visible .entry tiny(.param .u64 out)\n{\n" + body_with_live_values(20'000) + "  ret;\n}\n";
  CHECK(refusal_of_assembler(endless, kOneSecond) == "edited.ptx, layer row: in its sandbox it took more than 1 s");
}
