// Bitcode that the executor must not run: each is refused with its reason.
#include <random>

#include "ir/error.h"
#include "test/catch.h"
#include "test/host/kernel_text.h"

using burin_test::Contains;
using namespace burin_test;

namespace {

std::string refusal(const std::string& body, const std::string& others = "") {
  return refusal_of(assemble_kernel(body, others));
}

}  // namespace

TEST_CASE("no bitcode at all") {
  CHECK_THAT(refusal_of(""), Contains("bitcode: it cannot be read"));
  CHECK_THAT(refusal_of("not bitcode"), Contains("bitcode: it cannot be read"));
}

TEST_CASE("bitcode that was cut off or damaged") {
  const std::string whole = assemble_kernel("  ret void");
  for (const std::size_t length : {whole.size() / 4, whole.size() / 2, whole.size() - 4}) {
    CHECK_THAT(refusal_of(whole.substr(0, length)), Contains("bitcode: "));
  }
}

// LLVM's reader of bitcode loses a placeholder when it gives up on some damaged modules; that is not ours to mend.
extern "C" const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() { return "leak:llvm::BitcodeReader"; }

TEST_CASE("damaged bitcode is refused or loads, and never ends the process") {
  const std::string whole =
      assemble_kernel(R"(
  %a = alloca [2 x float]
  call void @fill(ptr %a)
  %x = load float, ptr %a
  call void @burin_dev_global_store(ptr %out, i64 %off, float %x)
  ret void)",
                      "define internal void @fill(ptr %p) {\n  store float 1.0, ptr %p\n  ret void\n}");
  int refused = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    std::string damaged = whole;
    for (unsigned flips = 1 + random() % 4; flips > 0; --flips) {
      const std::size_t at = random() % damaged.size();
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << (random() % 8)));
    }
    INFO("seed " << seed);
    try {
      const burin::HostKernel kernel(damaged, "k", form_of_row_kernel());
    } catch (const burin::Error& error) {
      CHECK(error.kind() == burin::ErrorKind::bad_input);
      ++refused;
    }
  }
  CHECK(refused > 0);
}

TEST_CASE("a module for another target") {
  CHECK_THAT(refusal_of(assemble_text("target triple = \"x86_64-pc-linux-gnu\"")),
             Contains("the module is for 'x86_64-pc-linux-gnu', not for 'nvptx64-nvidia-cuda'"));
}

TEST_CASE("a module without the kernel") {
  CHECK_THAT(refusal_of(assemble_module("")), Contains("there is no kernel 'k' in the module"));
  CHECK_THAT(refusal_of(assemble_module("define void @k(ptr %in) {\n  ret void\n}")),
             Contains("kernel 'k' does not have the parameters (input, output, residual, partials, counters, batch)"));
}

TEST_CASE("functions that are no primitives") {
  CHECK_THAT(refusal("  %x = call i32 @system(ptr %in)\n  ret void", "declare i32 @system(ptr)"),
             Contains("calls what is neither a function of the module nor a device primitive") && Contains("@system"));
  CHECK_THAT(refusal("  %f = inttoptr i64 4096 to ptr\n  call void %f()\n  ret void"),
             Contains("call through a pointer"));
  CHECK_THAT(refusal("  %x = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n  ret void",
                     "declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()"),
             Contains("intrinsic that the CPU does not have"));
  CHECK_THAT(refusal("  call void asm \"bar.sync 0;\", \"\"()\n  ret void"), Contains("inline assembly"));
}

TEST_CASE("a primitive with other types") {
  const std::string module = R"(
target triple = "nvptx64-nvidia-cuda"
define void @k(ptr %in, ptr %out, ptr %res, ptr %par, ptr %cnt, i32 %batch) {
  call void @burin_dev_copy_wait(i64 0)
  ret void
}
declare void @burin_dev_copy_wait(i64)
)";
  CHECK_THAT(refusal_of(assemble_text(module)),
             Contains("calls a device primitive with types that are not those of templates/device.h"));
}

TEST_CASE("memory without a primitive") {
  CHECK_THAT(refusal("  %x = load float, ptr %in\n  ret void"),
             Contains("function 'k': accesses memory without a device primitive") && Contains("load float"));
  CHECK_THAT(refusal("  store float 1.0, ptr %out\n  ret void"),
             Contains("accesses memory without a device primitive"));
  CHECK_THAT(refusal("  %p = inttoptr i64 %off to ptr\n  store float 1.0, ptr %p\n  ret void"),
             Contains("accesses memory without a device primitive"));
  CHECK_THAT(refusal("  %x = atomicrmw add ptr %cnt, i32 1 seq_cst\n  ret void"),
             Contains("instruction that is not supported"));
  CHECK_THAT(refusal("  call void @f(ptr %in)\n  ret void",
                     "define internal void @f(ptr %p) {\n  %x = load float, ptr %p\n  ret void\n}"),
             Contains("function 'f': accesses memory without a device primitive"));
}

TEST_CASE("memory outside of a local variable") {
  CHECK_THAT(refusal("  %a = alloca [4 x float]\n  %p = getelementptr float, ptr %a, i64 4\n  store float 1.0, ptr %p\n"
                     "  ret void"),
             Contains("accesses memory outside of a local variable"));
  CHECK_THAT(refusal("  %a = alloca float\n  store double 1.0, ptr %a\n  ret void"),
             Contains("accesses memory outside of a local variable"));
  CHECK_THAT(
      refusal("  %a = alloca [4 x float]\n  %p = getelementptr float, ptr %a, i64 -1\n  store float 1.0, ptr %p\n"
              "  ret void"),
      Contains("and not at a fixed place in a local variable"));
  CHECK_THAT(
      refusal("  %a = alloca [4 x float]\n  %p = getelementptr float, ptr %a, i64 %off\n  store float 1.0, ptr %p\n"
              "  ret void"),
      Contains("and not at a fixed place in a local variable"));
  CHECK_THAT(refusal("  store float 1.0, ptr @table\n  ret void", "@table = internal constant float 1.0"),
             Contains("accesses memory outside of a local variable"));
  CHECK_THAT(refusal("  %x = load float, ptr @variable\n  ret void", "@variable = internal global float 1.0"),
             Contains("uses a variable that is not a constant table of this module"));
  CHECK_THAT(refusal("  %a = alloca float, i32 %batch\n  ret void"),
             Contains("local variable whose size is not a small constant"));
}

TEST_CASE("a local variable whose caller is too small") {
  CHECK_THAT(refusal("  %a = alloca [2 x float]\n  %b2 = alloca [4 x float]\n  call void @f(ptr %a)\n"
                     "  call void @f(ptr %b2)\n  ret void",
                     "define internal void @f(ptr %p) {\n  %q = getelementptr float, ptr %p, i64 2\n"
                     "  store float 1.0, ptr %q\n  ret void\n}"),
             Contains("function 'f': accesses memory outside of a local variable"));
}

TEST_CASE("a copied parameter that is not there") {
  CHECK_THAT(refusal("  call void @f(ptr byval([4 x float]) %in)\n  ret void",
                     "define internal void @f(ptr byval([4 x float]) %p) {\n  ret void\n}"),
             Contains("accesses memory without a device primitive"));
}

TEST_CASE("types that the CPU side does not know") {
  CHECK_THAT(refusal("  %x = zext i64 %off to i4096\n  ret void"), Contains("has a type that is not supported"));
  CHECK_THAT(refusal("  %x = fptrunc float 1.5 to half\n  %y1 = fadd half %x, %x\n  ret void"),
             Contains("has a type that is not supported"));
  CHECK_THAT(refusal("  %x = addrspacecast ptr %in to ptr addrspace(1)\n  ret void"),
             Contains("has a type that is not supported"));
}

TEST_CASE("recursion") {
  CHECK_THAT(refusal("  call void @f()\n  ret void",
                     "define internal void @f() {\n  call void @g()\n  ret void\n}\n"
                     "define internal void @g() {\n  call void @f()\n  ret void\n}"),
             Contains("recursive call"));
}

TEST_CASE("the address of a function") {
  CHECK_THAT(refusal("  %x = ptrtoint ptr @f to i64\n  call void @burin_dev_global_store(ptr %out, i64 %x, float 0.0)\n"
                     "  ret void",
                     "define internal void @f() {\n  ret void\n}"),
             Contains("address of function"));
}

TEST_CASE("what the kernel does not reach is not looked at") {
  const Run run =
      run_bitcode(assemble_kernel("  call void @burin_dev_global_store(ptr %out, i64 %off, float 1.0)\n  ret void",
                                  R"(
define void @unused(ptr %p) {
  store i32 1, ptr %p
  ret void
}
@llvm.used = appending global [1 x ptr] [ptr @unused], section "llvm.metadata"
@state = internal global i32 0
!nvvm.annotations = !{!0}
!0 = !{ptr @k, !"kernel", i32 1}
)"));
  CHECK(run.fault.empty());
  CHECK(run.output == std::vector<float>(kCols, 1.0F));
}

TEST_CASE("a function that bears the name of one of this process") {
  // It is the module's own: the CPU's square root or memory functions must not be taken from it.
  const Run run =
      run_bitcode(assemble_kernel(R"(
  %v = call float @fmaf(float 1.0, float 2.0, float 3.0)
  call void @burin_dev_global_store(ptr %out, i64 %off, float %v)
  ret void)",
                                  "define float @fmaf(float %a, float %b, float %c) {\n  ret float 42.0\n}"));
  CHECK(run.fault.empty());
  CHECK(run.output == std::vector<float>(kCols, 42.0F));
}

TEST_CASE("a launch that no GPU would take") {
  const std::string bitcode = assemble_kernel("  ret void");
  RunOptions options;
  options.launch.threads = 1025;
  CHECK_THAT(refusal_of(bitcode, options),
             Contains("threads is 1025, allowed is") && Contains("to 1024 (kMaxThreadsPerBlock)"));
  options = {};
  options.launch.shared_bytes = 1 << 20;
  CHECK_THAT(refusal_of(bitcode, options), Contains("shared_bytes is 1048576, allowed is 0 to "));
  options = {};
  options.launch.tiles_per_image = 0;
  CHECK_THAT(refusal_of(bitcode, options), Contains("tiles_per_image is 0, allowed is 1 to "));
  options = {};
  options.launch.counters_per_tile = -1;
  CHECK_THAT(refusal_of(bitcode, options), Contains("counters_per_tile is -1, allowed is 0 to "));
}
