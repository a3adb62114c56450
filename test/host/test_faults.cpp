// Kernels that misuse global memory, partial sums or control flow in one way each: the executor says in which, and
// where.

#include "test/catch.h"
#include "test/host/kernel_text.h"

using burin_test::Contains;
using namespace burin_test;

namespace {

burin::LaunchGeometry with_scratch(int slices = 1) {
  burin::LaunchGeometry launch = row_launch();
  launch.slices = slices;
  launch.workspace_bytes_per_tile = kThreads * 4;
  launch.counters_per_tile = 1;
  return launch;
}

}  // namespace

// ---- the launch
TEST_CASE("memory is touched before the launch was awaited") {
  const std::string await = "  call void @burin_dev_await_launch()\n";
  const std::string load = "  %x = call float @burin_dev_global_load(ptr %in, i64 %off)\n";
  CHECK(run_kernel(await + load + kStoreOne + "  ret void").fault.empty());
  CHECK_THAT(fault_of(load + await + kStoreOne + "  ret void"),
             Contains("thread 0: load before the thread has awaited its launch"));
  CHECK_THAT(fault_of(only_thread(0, await) + kStoreOne + "  ret void"),
             Contains("store before the thread has awaited its launch"));
  const std::string copy = "  call void @burin_dev_copy_async(i32 0, i32 0, ptr %in, i64 0, i32 1)\n";
  CHECK_THAT(fault_of(copy + await + kStoreOne + "  ret void"),
             Contains("asynchronous copy before the thread has awaited its launch"));
}

// ---- global memory

TEST_CASE("load past the input") {
  CHECK_THAT(fault_of(only_thread(3, "  %x = call float @burin_dev_global_load(ptr %in, i64 32)\n") + kStoreOne +
                      "  ret void"),
             Contains("block (0, 0), thread 3: load from input out of bounds: element 8, past the 8 of the launch"));
}

TEST_CASE("load before the input") {
  CHECK_THAT(fault_of(only_thread(0, "  %x = call float @burin_dev_global_load(ptr %in, i64 -4)\n") + kStoreOne +
                      "  ret void"),
             Contains("thread 0: load from input out of bounds: element -1, before the 8 of the launch"));
}

TEST_CASE("copy from past the input") {
  CHECK_THAT(fault_of(only_thread(1, "  call void @burin_dev_copy_async(i32 0, i32 0, ptr %in, i64 4000, i32 1)\n") +
                      "  ret void"),
             Contains("thread 1: load from input out of bounds: element 1000, past the 8"));
}

TEST_CASE("misaligned load") {
  CHECK_THAT(fault_of(only_thread(2, "  %x = call float @burin_dev_global_load(ptr %in, i64 6)\n") + "  ret void"),
             Contains("thread 2: misaligned load from input at byte 6, which is not a multiple of 4"));
}

TEST_CASE("load from the output") {
  CHECK_THAT(fault_of(only_thread(2, "  %x = call float @burin_dev_global_load(ptr %out, i64 8)\n") + "  ret void"),
             Contains("thread 2: load from input at byte 8 of the output, which is not for this access"));
}

TEST_CASE("load from partial sums other than as scratch") {
  CHECK_THAT(fault_of(only_thread(0, "  %x = call float @burin_dev_global_load(ptr %par, i64 0)\n") + "  ret void",
                      {.launch = with_scratch()}),
             Contains("load from input at byte 0 of the partial sums, which is not for this access"));
}

TEST_CASE("load of a residual that the layer has not") {
  CHECK_THAT(fault_of(only_thread(0, "  %x = call float @burin_dev_global_load(ptr %res, i64 16)\n") + "  ret void"),
             Contains("load from input at address 0x10, which belongs to no buffer of the launch"));
}

TEST_CASE("load past the residual") {
  RunOptions options;
  options.shape.epilogue.residual = true;
  CHECK_THAT(
      fault_of(only_thread(0, "  %x = call float @burin_dev_global_load(ptr %res, i64 32)\n") + "  ret void", options),
      Contains("load from residual out of bounds: element 8, past the 8 of the launch"));
}

TEST_CASE("store past the output") {
  CHECK_THAT(
      fault_of(only_thread(1, "  call void @burin_dev_global_store(ptr %out, i64 36, float 1.0)\n") + "  ret void"),
      Contains("thread 1: store to output out of bounds: element 9, past the 8 of the launch"));
}

TEST_CASE("store to the input") {
  CHECK_THAT(
      fault_of(only_thread(1, "  call void @burin_dev_global_store(ptr %in, i64 4, float 1.0)\n") + "  ret void"),
      Contains("thread 1: store to output at byte 4 of the input, which is not for this access"));
}

TEST_CASE("output element written by nobody") {
  const std::string fault = fault_of(R"(
  %skip = icmp eq i32 %pixel, 6
  br i1 %skip, label %end, label %write
write:
  call void @burin_dev_global_store(ptr %out, i64 %off, float 1.0)
  br label %end
end:
  ret void)");
  CHECK_THAT(fault, Contains("kernel 'k': output element 6 (image 0, channel 0, row 0, col 6) was not written by any "
                             "thread; 1 of 8 elements are missing"));
}

TEST_CASE("output element written twice") {
  CHECK_THAT(fault_of(kStoreOne + only_thread(3, "  call void @burin_dev_global_store(ptr %out, i64 0, float 1.0)\n") +
                      "  ret void"),
             Contains("block (0, 0), thread 3: store to output element 0 (image 0, channel 0, row 0, col 0) a second "
                      "time, after block (0, 0)"));
}

TEST_CASE("output element written by two blocks") {
  CHECK_THAT(fault_of("  %where = zext i32 %t4 to i64\n  call void @burin_dev_global_store(ptr %out, i64 %where, float "
                      "1.0)\n  ret void"),
             Contains("a second time, after block ("));
}

// ---- partial sums

TEST_CASE("load of a partial sum that nobody has written") {
  CHECK_THAT(
      fault_of("  %x = call float @burin_dev_scratch_load(ptr %par, i64 %off)\n  ret void", {.launch = with_scratch()}),
      Contains("load of partial sum ") && Contains("which nobody has written in this launch"));
}

TEST_CASE("scratch access past the partial sums") {
  CHECK_THAT(fault_of("  call void @burin_dev_scratch_store(ptr %par, i64 32, float 1.0)\n  ret void",
                      {.launch = with_scratch()}),
             Contains("thread 0: scratch store to partial sums out of bounds: element 8, past the 8 of the launch"));
}

TEST_CASE("two slices write the same partial sum") {
  CHECK_THAT(fault_of("  call void @burin_dev_scratch_store(ptr %par, i64 %off, float 1.0)\n  ret void",
                      {.launch = with_scratch(2)}),
             Contains("store to partial sum ") && Contains("has written"));
}

TEST_CASE("load of another block's partial sum before the blocks have met") {
  // Block 0 runs after block 1 or before it; in one of the orders the sum is there, but nothing says so.
  const std::string fault = fault_of(R"(
  call void @burin_dev_scratch_store(ptr %par, i64 %off, float 1.0)
  %other = xor i64 %off, 16
  %x = call float @burin_dev_scratch_load(ptr %par, i64 %other)
  ret void)",
                                     {.launch = with_scratch()});
  CHECK_THAT(fault, Contains("before both blocks have counted their arrival") || Contains("which nobody has written"));
}

TEST_CASE("load of another thread's partial sum without a barrier") {
  CHECK_THAT(
      fault_of(R"(
  call void @burin_dev_scratch_store(ptr %par, i64 %off, float 1.0)
  %other = and i64 %off, 16
  %x = call float @burin_dev_scratch_load(ptr %par, i64 %other)
  ret void)",
               {.launch = with_scratch()}),
      Contains("thread 1: race on partial sum ") && Contains("written by thread 0, without a barrier in between"));
}

TEST_CASE("an arrival that does not follow a fence") {
  CHECK_THAT(fault_of(R"(
  call void @burin_dev_scratch_store(ptr %par, i64 %off, float 1.0)
  call void @burin_dev_barrier()
  %old = call i32 @burin_dev_count_arrival(ptr %cnt, i32 7)
  ret void)",
                      {.launch = with_scratch()}),
             Contains("counts an arrival while partial sums of thread 0 are not ordered before it"));
}

TEST_CASE("an arrival that does not follow a barrier") {
  CHECK_THAT(fault_of(R"(
  call void @burin_dev_scratch_store(ptr %par, i64 %off, float 1.0)
  call void @burin_dev_fence()
  %is = icmp eq i32 %t, 3
  br i1 %is, label %count, label %rest
count:
  %old = call i32 @burin_dev_count_arrival(ptr %cnt, i32 7)
  br label %rest
rest:
  ret void)",
                      {.launch = with_scratch()}),
             Contains("thread 3: counts an arrival while partial sums of thread 0 are not ordered before it"));
}

TEST_CASE("a partial sum stored after the arrival") {
  CHECK_THAT(fault_of(R"(
  %old = call i32 @burin_dev_count_arrival(ptr %cnt, i32 7)
  call void @burin_dev_scratch_store(ptr %par, i64 %off, float 1.0)
  ret void)",
                      {.launch = with_scratch()}),
             Contains("thread 0: stores a partial sum after its block has counted its arrival"));
}

TEST_CASE("counters that are not zero in the end") {
  CHECK_THAT(fault_of(only_thread(1, "  %old = call i32 @burin_dev_count_arrival(ptr %cnt, i32 1)\n") + kStoreOne +
                          "  ret void",
                      {.launch = with_scratch()}),
             Contains("kernel 'k': arrival counter 0 is 1 after the launch, not zero"));
}

TEST_CASE("count in what is no counter") {
  CHECK_THAT(
      fault_of("  %old = call i32 @burin_dev_count_arrival(ptr %par, i32 1)\n  ret void", {.launch = with_scratch()}),
      Contains("count of an arrival in counters at byte 0 of the partial sums, which is not for this access"));
}

// ---- the rest

TEST_CASE("unreachable code and division by zero are faults, not crashes") {
  CHECK_THAT(fault_of("  unreachable"), Contains("thread 0: reached code that is marked as unreachable"));
  CHECK_THAT(fault_of("  %q = udiv i32 1, %t\n  %v = uitofp i32 %q to float\n  ret void"),
             Contains("thread 0: integer division by zero"));
  CHECK_THAT(fault_of("  %m = sub i32 0, %batch\n  %q = sdiv i32 -2147483648, %m\n  ret void"),
             Contains("thread 0: integer division overflows"));
}

TEST_CASE("the fault that is reported is the same in every run") {
  const std::string body = "  %x = call float @burin_dev_shared_load(i32 0, i32 0)\n  ret void";
  const std::string first = fault_of(body, {.batch = 100});
  for (int repeat = 0; repeat < 20; ++repeat) CHECK(fault_of(body, {.batch = 100}) == first);
}

TEST_CASE("a kernel runs after a fault") {
  burin::HostKernel kernel(assemble_kernel(only_thread(0, R"(
  call void @burin_dev_copy_async(i32 16, i32 0, ptr %in, i64 0, i32 1)
  call void @burin_dev_copy_commit()
  %wrong = icmp eq i32 %batch, 2
  br i1 %wrong, label %fault, label %fine
fault:
  ret void
fine:
  call void @burin_dev_copy_wait(i32 0)
)") + kStoreOne + "  ret void"),
                           "k", form_of_row_kernel());
  const std::vector<float> input(2 * kCols);
  std::vector<float> output(2 * kCols);
  for (int repeat = 0; repeat < 3; ++repeat) {
    CHECK_THROWS_WITH(kernel.run({2, input, output, {}}), Contains("ended with a copy in flight"));
    CHECK_NOTHROW(kernel.run({1, std::span(input).first(kCols), std::span(output).first(kCols), {}}));
  }
}
