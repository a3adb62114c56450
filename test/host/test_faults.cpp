// Kernels that are wrong in one way each: the executor says in which, and where.
#include <catch2/catch.hpp>

#include "compiler/host/shared_memory.h"
#include "test/host/kernel_text.h"

using Catch::Contains;
using namespace burin_test;

namespace {

std::string fault_of(const std::string& body, const RunOptions& options = {}) {
  const std::string fault = run_kernel(body, options).fault;
  CHECK_THAT(fault, Catch::StartsWith("kernel 'k'"));
  return fault;
}

// Every thread stores 1 to its pixel; put before "ret void" where a test needs a complete output.
const std::string kStoreOne = "  call void @burin_dev_global_store(ptr %out, i64 %off, float 1.0)\n";

burin::LaunchGeometry with_scratch(int slices = 1) {
  burin::LaunchGeometry launch = row_launch();
  launch.slices = slices;
  launch.workspace_bytes_per_tile = kThreads * 4;
  launch.counters_per_tile = 1;
  return launch;
}

// Only thread `thread` of block (0, 0) runs `body`.
std::string only_thread(int thread, const std::string& body) {
  return "  %is = icmp eq i32 %t, " + std::to_string(thread) +
         "\n  %at = icmp eq i32 %b, 0\n  %me = and i1 %is, %at\n  br i1 %me, label %one, label %rest\none:\n" + body +
         "  br label %rest\nrest:\n";
}

}  // namespace

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

// ---- shared memory

TEST_CASE("load past shared memory") {
  CHECK_THAT(fault_of(only_thread(2, "  %x = call float @burin_dev_shared_load(i32 60, i32 4)\n") + "  ret void"),
             Contains("block (0, 0), thread 2: load from shared memory at byte 64, outside the 64 bytes of the block"));
}

TEST_CASE("store before shared memory") {
  CHECK_THAT(fault_of(only_thread(2, "  call void @burin_dev_shared_store(i32 0, i32 -4, float 1.0)\n") + "  ret void"),
             Contains("thread 2: store to shared memory at byte 4294967292, outside the 64 bytes"));
}

TEST_CASE("misaligned store to shared memory") {
  CHECK_THAT(fault_of(only_thread(2, "  call void @burin_dev_shared_store(i32 0, i32 5, float 1.0)\n") + "  ret void"),
             Contains("thread 2: misaligned store to shared memory at byte 5, which is not a multiple of 4"));
}

TEST_CASE("copy to past shared memory") {
  CHECK_THAT(fault_of(only_thread(2, "  call void @burin_dev_copy_async(i32 64, i32 0, ptr %in, i64 0, i32 0)\n") +
                      "  ret void"),
             Contains("thread 2: copy into shared memory at byte 64, outside the 64 bytes of the block"));
}

TEST_CASE("load of a shared word that was never written") {
  CHECK_THAT(fault_of(only_thread(1, "  %x = call float @burin_dev_shared_load(i32 8, i32 0)\n") + "  ret void"),
             Contains("thread 1: load from shared memory at byte 8, which no thread of the block has written"));
}

TEST_CASE("what another block left in shared memory is gone") {
  burin::SharedMemory memory(kSharedBytes, kThreads);
  float value = 0;
  memory.begin_block();
  CHECK_FALSE(memory.store(8, 0, 1.0F));
  CHECK_FALSE(memory.copy(12, 0, 2.0F));
  memory.begin_interval();
  CHECK_FALSE(memory.load(8, 1, value));
  memory.begin_block();
  for (const std::uint32_t address : {8U, 12U}) {
    const auto fault = memory.load(address, 0, value);
    REQUIRE(fault);
    CHECK_THAT(*fault, Contains("which no thread of the block has written"));
  }
}

TEST_CASE("race: load of what another thread wrote in the same interval") {
  CHECK_THAT(fault_of(R"(
  call void @burin_dev_shared_store(i32 %t4, i32 0, float 1.0)
  %back = sub i32 %t4, 4
  %is = icmp eq i32 %t, 2
  br i1 %is, label %read, label %rest
read:
  %x = call float @burin_dev_shared_load(i32 %back, i32 0)
  br label %rest
rest:
  ret void)"),
             Contains("thread 2: race on shared memory at byte 4: load by thread 2 of what thread 1 wrote, without a "
                      "barrier in between"));
}

TEST_CASE("race: store to what another thread read in the same interval") {
  CHECK_THAT(fault_of(R"(
  call void @burin_dev_shared_store(i32 %t4, i32 0, float 1.0)
  call void @burin_dev_barrier()
  %x = call float @burin_dev_shared_load(i32 %t4, i32 0)
  call void @burin_dev_barrier()
  %y1 = call float @burin_dev_shared_load(i32 %t4, i32 0)
  %last = icmp eq i32 %t, 3
  br i1 %last, label %write, label %rest
write:
  call void @burin_dev_shared_store(i32 4, i32 0, float 2.0)
  br label %rest
rest:
  ret void)"),
             Contains("thread 3: race on shared memory at byte 4: store to it by thread 3 after a load by thread 1"));
}

TEST_CASE("race: store to what several threads read in the same interval") {
  CHECK_THAT(
      fault_of(R"(
  call void @burin_dev_shared_store(i32 %t4, i32 0, float 1.0)
  call void @burin_dev_barrier()
  call void @burin_dev_barrier()
  %x = call float @burin_dev_shared_load(i32 0, i32 0)
  %last = icmp eq i32 %t, 3
  br i1 %last, label %write, label %rest
write:
  call void @burin_dev_shared_store(i32 0, i32 0, float 2.0)
  br label %rest
rest:
  ret void)"),
      Contains("thread 3: race on shared memory at byte 0: store to it by thread 3 after a load by several threads"));
}

TEST_CASE("a race is found in either order of the two threads") {
  for (const char* writer : {"0", "3"}) {
    const std::string body = std::string(R"(
  call void @burin_dev_shared_store(i32 %t4, i32 0, float 1.0)
  call void @burin_dev_barrier()
  %writes = icmp eq i32 %t, )") +
                             writer +
                             R"(
  br i1 %writes, label %write, label %read
write:
  call void @burin_dev_shared_store(i32 4, i32 0, float 2.0)
  ret void
read:
  %x = call float @burin_dev_shared_load(i32 4, i32 0)
  ret void)";
    CHECK_THAT(fault_of(body), Contains("race on shared memory at byte 4"));
  }
}

TEST_CASE("race: two threads write the same word") {
  CHECK_THAT(fault_of("  call void @burin_dev_shared_store(i32 12, i32 0, float 1.0)\n  ret void"),
             Contains("thread 1: race on shared memory at byte 12: store to it by thread 1 and written by thread 0"));
}

TEST_CASE("race: copy into what another thread read in the same interval") {
  CHECK_THAT(fault_of(R"(
  call void @burin_dev_shared_store(i32 %t4, i32 0, float 1.0)
  call void @burin_dev_barrier()
  call void @burin_dev_barrier()
  switch i32 %t, label %rest [
    i32 0, label %read
    i32 1, label %copy
  ]
read:
  %x = call float @burin_dev_shared_load(i32 4, i32 0)
  br label %rest
copy:
  call void @burin_dev_copy_async(i32 4, i32 0, ptr %in, i64 0, i32 1)
  br label %rest
rest:
  ret void)"),
             Contains("thread 1: race on shared memory at byte 4: copy into it by thread 1 after a load by thread 0"));
}

// ---- asynchronous copies

TEST_CASE("load of a copy that was not waited for") {
  CHECK_THAT(
      fault_of(R"(
  call void @burin_dev_copy_async(i32 %t4, i32 0, ptr %in, i64 0, i32 1)
  call void @burin_dev_copy_commit()
  call void @burin_dev_copy_wait(i32 1)
  %x = call float @burin_dev_shared_load(i32 %t4, i32 0)
  ret void)"),
      Contains("thread 0: load from shared memory at byte 0 while a copy into it is in flight: thread 0 issued it "
               "and has not waited for it"));
}

TEST_CASE("load of a copy that was not committed") {
  CHECK_THAT(fault_of(R"(
  call void @burin_dev_copy_async(i32 %t4, i32 0, ptr %in, i64 0, i32 1)
  call void @burin_dev_copy_wait(i32 0)
  %x = call float @burin_dev_shared_load(i32 %t4, i32 0)
  ret void)"),
             Contains("thread 0 issued it and has not committed it"));
}

TEST_CASE("load of another thread's copy that only that thread has waited for") {
  CHECK_THAT(fault_of(R"(
  call void @burin_dev_copy_async(i32 %t4, i32 0, ptr %in, i64 0, i32 1)
  call void @burin_dev_copy_commit()
  call void @burin_dev_barrier()
  call void @burin_dev_copy_wait(i32 0)
  %next = xor i32 %t4, 4
  %x = call float @burin_dev_shared_load(i32 %next, i32 0)
  ret void)"),
             Contains("in flight: thread 2 issued it and has not waited for it"));
}

TEST_CASE("load of another thread's copy without a barrier after the wait") {
  CHECK_THAT(fault_of(R"(
  call void @burin_dev_copy_async(i32 %t4, i32 0, ptr %in, i64 0, i32 1)
  call void @burin_dev_copy_commit()
  call void @burin_dev_copy_wait(i32 0)
  %is = icmp eq i32 %t, 3
  br i1 %is, label %read, label %rest
read:
  %x = call float @burin_dev_shared_load(i32 0, i32 0)
  br label %rest
rest:
  ret void)"),
             Contains("thread 3: race on shared memory at byte 0: load by thread 3 of what thread 0 wrote"));
}

TEST_CASE("issuing a copy makes the old value unreadable") {
  CHECK_THAT(fault_of(R"(
  call void @burin_dev_shared_store(i32 %t4, i32 0, float 1.0)
  call void @burin_dev_copy_async(i32 %t4, i32 0, ptr %in, i64 0, i32 1)
  %x = call float @burin_dev_shared_load(i32 %t4, i32 0)
  ret void)"),
             Contains("while a copy into it is in flight"));
}

TEST_CASE("store over a copy in flight") {
  CHECK_THAT(fault_of(R"(
  call void @burin_dev_copy_async(i32 %t4, i32 0, ptr %in, i64 0, i32 1)
  call void @burin_dev_shared_store(i32 %t4, i32 0, float 1.0)
  ret void)"),
             Contains("store to shared memory at byte 0 while a copy into it, issued by thread 0, is in flight"));
}

TEST_CASE("a thread ends with a copy in flight") {
  CHECK_THAT(
      fault_of(R"(
  call void @burin_dev_copy_async(i32 %t4, i32 16, ptr %in, i64 0, i32 1)
  call void @burin_dev_copy_commit()
  ret void)"),
      Contains("thread 0: ended with a copy in flight, into shared memory at byte 16, which it committed but never "
               "waited for"));
  CHECK_THAT(fault_of(R"(
  call void @burin_dev_copy_async(i32 %t4, i32 16, ptr %in, i64 0, i32 1)
  call void @burin_dev_exit()
  unreachable)"),
             Contains("which it never committed"));
}

// ---- barriers

TEST_CASE("a thread that has ended misses a barrier") {
  CHECK_THAT(fault_of(R"(
  %is = icmp eq i32 %t, 2
  br i1 %is, label %end, label %meet
meet:
  call void @burin_dev_barrier()
  br label %end
end:
  ret void)"),
             Contains("thread 0: divergence: waits at a barrier that thread 2, which has ended, never reaches"));
}

TEST_CASE("a thread that has ended misses a broadcast") {
  CHECK_THAT(fault_of(R"(
  %is = icmp eq i32 %t, 0
  br i1 %is, label %end, label %meet
meet:
  %v = call i32 @burin_dev_broadcast(i32 1)
  br label %end
end:
  ret void)"),
             Contains("thread 1: divergence: waits at a broadcast that thread 0, which has ended, never reaches"));
}

TEST_CASE("threads meet at a barrier and a broadcast") {
  CHECK_THAT(fault_of(R"(
  %is = icmp eq i32 %t, 3
  br i1 %is, label %other, label %meet
meet:
  call void @burin_dev_barrier()
  br label %end
other:
  %v = call i32 @burin_dev_broadcast(i32 1)
  br label %end
end:
  ret void)"),
             Contains("thread 0: divergence: waits at a barrier while thread 3 waits at a broadcast"));
}

TEST_CASE("a broadcast takes the first word of shared memory") {
  CHECK_THAT(fault_of(R"(
  call void @burin_dev_shared_store(i32 %t4, i32 0, float 1.0)
  call void @burin_dev_barrier()
  %v = call i32 @burin_dev_broadcast(i32 1)
  %x = call float @burin_dev_shared_load(i32 0, i32 0)
  ret void)"),
             Contains("load from shared memory at byte 0, which no thread of the block has written"));
  RunOptions options;
  options.launch.shared_bytes = 0;
  CHECK_THAT(fault_of("  %v = call i32 @burin_dev_broadcast(i32 1)\n  ret void", options),
             Contains("broadcast without shared memory"));
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
                           "k", row_launch(), row_shape());
  const std::vector<float> input(2 * kCols);
  std::vector<float> output(2 * kCols);
  for (int repeat = 0; repeat < 3; ++repeat) {
    CHECK_THROWS_WITH(kernel.run({2, input, output, {}}), Contains("ended with a copy in flight"));
    CHECK_NOTHROW(kernel.run({1, std::span(input).first(kCols), std::span(output).first(kCols), {}}));
  }
}
