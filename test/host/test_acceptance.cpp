// Modules that the executor cannot run: each is refused with its reason. What it can run may do anything: see
// test/sandbox.
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

TEST_CASE("a module without the kernel") {
  CHECK_THAT(refusal_of(assemble_module("")), Contains("there is no kernel 'k' in the module"));
  CHECK_THAT(refusal_of(assemble_module("define void @k(ptr %in) {\n  ret void\n}")),
             Contains("kernel 'k' does not have the parameters (input, output, residual, partials, counters, batch)"));
}

TEST_CASE("functions that are no primitives") {
  CHECK_THAT(refusal("  %x = call i32 @system(ptr %in)\n  ret void", "declare i32 @system(ptr)"),
             Contains("bitcode: the host cannot compile it: Symbols not found: [ system ]"));
}

TEST_CASE("recursion") {
  CHECK_THAT(refusal("  call void @f()\n  ret void",
                     "define internal void @f() {\n  call void @g()\n  ret void\n}\n"
                     "define internal void @g() {\n  call void @f()\n  ret void\n}"),
             Contains("is recursive"));
}

TEST_CASE("what the kernel does not reach does no harm") {
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
