// Bulk copies and gates: kernels that use them rightly, and kernels that misuse them in one way each.
#include <fmt/format.h>

#include <vector>

#include "compiler/host/shared_memory.h"
#include "test/catch.h"
#include "test/host/kernel_text.h"

using burin_test::Contains;
using namespace burin_test;

namespace {

// Room for all gates, and 128 bytes behind them.
constexpr int kTarget = 128, kBytes = 256;

RunOptions with_gates() {
  RunOptions options;
  options.launch.shared_bytes = kBytes;
  return options;
}

// Only thread `thread` of each block runs `body`; `name` is unique in the kernel.
std::string by(int thread, const std::string& name, const std::string& body) {
  return fmt::format(
      "  %is_{0} = icmp eq i32 %t, {1}\n  br i1 %is_{0}, label %do_{0}, label %go_{0}\ndo_{0}:\n{2}  br label "
      "%go_{0}\ngo_{0}:\n",
      name, thread, body);
}

std::string init(int gate) { return fmt::format("  call void @burin_dev_gate_init(i32 {})\n", gate); }
std::string expect(int gate, int bytes) {
  return fmt::format("  call void @burin_dev_gate_expect(i32 {}, i32 {})\n", gate, bytes);
}
std::string wait(int gate, int phase) {
  return fmt::format("  call void @burin_dev_gate_wait(i32 {}, i32 {})\n", gate, phase);
}
std::string copy(int target, int source, int bytes, int gate) {
  return fmt::format("  call void @burin_dev_bulk_copy(i32 {}, i32 0, ptr %in, i64 {}, i32 {}, i32 {})\n", target,
                     source, bytes, gate);
}
std::string load(const std::string& name, int address) {
  return fmt::format("  %{} = call float @burin_dev_shared_load(i32 %t4, i32 {})\n", name, address);
}
const std::string kBlockBarrier = "  call void @burin_dev_barrier()\n";
const std::string kEnd = "  ret void";
// Gate 0 is there, and a thread has announced and started a copy of the input's first 16 bytes. Threads run in the
// order 3, 2, 1, 0 here: it is turned round by the barrier.
std::string started_by(int thread) {
  return by(0, "init", init(0)) + kBlockBarrier + by(thread, "start", expect(0, 16) + copy(kTarget, 0, 16, 0));
}
const std::string kStarted = started_by(0);

std::string bulk_fault(const std::string& body) { return fault_of(body + kEnd, with_gates()); }

}  // namespace

// ---- right

TEST_CASE("three phases of one gate, the last into the first one's place") {
  const Run run = run_kernel(by(0, "init", init(3)) + kBlockBarrier +                           //
                                 by(0, "one", expect(3, 16) + copy(kTarget, 0, 16, 3)) +        //
                                 wait(3, 0) + load("x", kTarget) + kBlockBarrier +              //
                                 by(0, "two", expect(3, 16) + copy(kTarget + 16, 16, 16, 3)) +  //
                                 wait(3, 1) + load("y1", kTarget + 16) + kBlockBarrier +        //
                                 by(0, "three", expect(3, 32) + copy(kTarget, 0, 32, 3)) +      //
                                 wait(3, 0) + load("z", kTarget + 16) + R"(
  %xy = call float @llvm.fma.f32(float %x, float 100.0, float %y1)
  %xyz = call float @llvm.fma.f32(float %xy, float 100.0, float %z)
  call void @burin_dev_global_store(ptr %out, i64 %off, float %xyz)
)" + kEnd,
                             with_gates());
  REQUIRE(run.fault.empty());
  for (int i = 0; i < kCols; ++i) {
    const int x = i % kThreads + 1, y = x + kThreads;
    CHECK(run.output[static_cast<std::size_t>(i)] == static_cast<float>((x * 100 + y) * 100 + y));
  }
}

TEST_CASE("several threads start the copies of one phase, before and after it is announced") {
  for (const int announcer : {0, 3}) {
    const Run run = run_kernel(
        by(1, "init", init(0)) + kBlockBarrier + by(announcer, "expect", expect(0, 32)) +
            by(1, "copy1", copy(kTarget, 0, 16, 0)) + by(2, "copy2", copy(kTarget + 16, 16, 16, 0)) + wait(0, 0) +
            load("x", kTarget + 16) + "  call void @burin_dev_global_store(ptr %out, i64 %off, float %x)\n" + kEnd,
        with_gates());
    REQUIRE(run.fault.empty());
    for (int i = 0; i < kCols; ++i) {
      CHECK(run.output[static_cast<std::size_t>(i)] == static_cast<float>(i % kThreads + 1 + kThreads));
    }
  }
}

TEST_CASE("a barrier after one thread's wait is enough for the others") {
  const Run run = run_kernel(kStarted + by(2, "wait", wait(0, 0)) + kBlockBarrier + load("x", kTarget) +
                                 "  call void @burin_dev_global_store(ptr %out, i64 %off, float %x)\n" + kEnd,
                             with_gates());
  REQUIRE(run.fault.empty());
  CHECK(run.output == std::vector<float>{1, 2, 3, 4, 1, 2, 3, 4});
}

TEST_CASE("a thread may write what a bulk copy brought it") {
  const Run run = run_kernel(kStarted + wait(0, 0) + load("x", kTarget) + R"(
  %twice = fadd float %x, %x
  call void @burin_dev_shared_store(i32 %t4, i32 128, float %twice)
)" + load("z", kTarget) + "  call void @burin_dev_global_store(ptr %out, i64 %off, float %z)\n" +
                                 kEnd,
                             with_gates());
  REQUIRE(run.fault.empty());
  CHECK(run.output == std::vector<float>{2, 4, 6, 8, 2, 4, 6, 8});
}

TEST_CASE("gates and flights of one block are gone in the next") {
  burin::SharedMemory memory(kBytes, kThreads);
  const std::vector<float> values(4, 1.0F);
  float value = 0;
  for (int block = 0; block < 2; ++block) {
    memory.begin_block();
    CHECK(memory.load(kTarget, 0, value));
    CHECK_FALSE(memory.store(16, 0, 1.0F));  // the place of gate 0
    memory.begin_interval();
    CHECK_FALSE(memory.gate_init(0, 0));
    memory.begin_interval();
    CHECK_FALSE(memory.gate_expect(0, 16, 0));
    CHECK_FALSE(memory.bulk_copy(kTarget, values, 0, 0));
  }
}

// ---- the copy

TEST_CASE("bulk copy from beyond the input") {
  const std::string ready = by(0, "init", init(0)) + kBlockBarrier;
  CHECK_THAT(
      bulk_fault(ready + by(0, "copy", copy(kTarget, 16, 32, 0))),
      Contains("block (0, 0), thread 0: bulk copy from input out of bounds: 32 bytes from element 4 on, of the 8 "
               "elements of the launch"));
  CHECK_THAT(bulk_fault(ready + by(0, "copy", copy(kTarget, 32, 16, 0))),
             Contains("bulk copy from input out of bounds: element 8, past the 8 of the launch"));
  CHECK_THAT(bulk_fault(ready + by(0, "copy", copy(kTarget, -16, 16, 0))),
             Contains("bulk copy from input out of bounds: element -4, before the 8 of the launch"));
  CHECK_THAT(bulk_fault(ready + by(0, "copy",
                                   fmt::format("  call void @burin_dev_bulk_copy(i32 {}, i32 0, ptr %out, i64 0, i32 "
                                               "16, i32 0)\n",
                                               kTarget))),
             Contains("bulk copy from input at byte 0 of the output, which is not for this access"));
}

TEST_CASE("misaligned bulk copy") {
  const std::string ready = by(0, "init", init(0)) + kBlockBarrier;
  CHECK_THAT(bulk_fault(ready + by(0, "copy", copy(kTarget, 4, 16, 0))),
             Contains("misaligned bulk copy from input at byte 4, which is not a multiple of 16"));
  CHECK_THAT(bulk_fault(ready + by(0, "copy", copy(kTarget + 8, 0, 16, 0))),
             Contains("misaligned bulk copy into shared memory at byte 136, which is not a multiple of 16"));
  for (const int bytes : {0, 20}) {
    CHECK_THAT(bulk_fault(ready + by(0, "copy", copy(kTarget, 0, bytes, 0))),
               Contains(fmt::format("bulk copy of {} bytes from input; it must be a multiple of 16 and not 0", bytes)));
  }
}

TEST_CASE("bulk copy to past shared memory") {
  const std::string ready = by(0, "init", init(0)) + kBlockBarrier;
  for (const int target : {kBytes - 16, kBytes, 1 << 20}) {
    CHECK_THAT(bulk_fault(ready + by(0, "copy", copy(target, 0, 32, 0))),
               Contains(fmt::format("bulk copy of 32 bytes into shared memory at byte {}, which does not fit the 256 "
                                    "bytes of the block",
                                    target)));
  }
}

TEST_CASE("bulk copy over what another thread may still read") {
  CHECK_THAT(bulk_fault(kStarted + wait(0, 0) + kBlockBarrier + load("x", kTarget) +
                        by(3, "again", expect(0, 16) + copy(kTarget, 0, 16, 0))),
             Contains("thread 3: race on shared memory at byte 128: bulk copy into it by thread 3 after a load by "
                      "thread 0, without a barrier in between"));
}

TEST_CASE("bulk copy over what its own thread has just read") {
  CHECK_THAT(bulk_fault(kStarted + wait(0, 0) + kBlockBarrier +
                        by(0, "again", load("x", kTarget) + expect(0, 16) + copy(kTarget, 0, 16, 0))),
             Contains("thread 0: race on shared memory at byte 128: bulk copy into it by thread 0 without a barrier "
                      "since its last use"));
}

TEST_CASE("bulk copy over one in flight") {
  CHECK_THAT(bulk_fault(kStarted + by(0, "init1", init(1)) + kBlockBarrier + by(2, "again", copy(kTarget, 0, 16, 1))),
             Contains("thread 2: bulk copy into shared memory at byte 128 while a copy into it, issued by a bulk copy "
                      "at gate 0, is in flight"));
}

TEST_CASE("bulk copy over what a thread has written") {
  CHECK_THAT(bulk_fault(by(0, "init", init(0)) +
                        by(1, "write",
                           fmt::format("  call void @burin_dev_shared_store(i32 "
                                       "{}, i32 0, float 1.0)\n",
                                       kTarget + 4)) +
                        kBlockBarrier + by(0, "copy", expect(0, 16) + copy(kTarget, 0, 16, 0))),
             Contains("thread 0: bulk copy into shared memory at byte 132, which thread 1 has written itself"));
}

TEST_CASE("store over a bulk copy in flight") {
  CHECK_THAT(bulk_fault(started_by(3) +
                        fmt::format("  call void @burin_dev_shared_store(i32 %t4, i32 {}, float 1.0)\n", kTarget)),
             Contains("thread 3: store to shared memory at byte 140 while a copy into it, issued by a bulk copy at "
                      "gate 0, is in flight"));
}

TEST_CASE("load of a bulk copy that nobody has waited for") {
  CHECK_THAT(bulk_fault(kStarted + kBlockBarrier + load("x", kTarget)),
             Contains("load from shared memory at byte 128 while a bulk copy into it is in flight: nobody has waited "
                      "for phase 0 of gate 0"));
}

TEST_CASE("load of a bulk copy that only another thread has waited for") {
  const std::string load_first = fmt::format("  %x = call float @burin_dev_shared_load(i32 {}, i32 0)\n", kTarget);
  CHECK_THAT(bulk_fault(started_by(3) + by(1, "wait", wait(0, 0)) + by(2, "read", load_first)),
             Contains("load from shared memory at byte 128 while a bulk copy into it is in flight"));
  CHECK_THAT(bulk_fault(started_by(3) + by(3, "wait", wait(0, 0)) + by(2, "read", load_first)),
             Contains("thread 2: race on shared memory at byte 128: load by thread 2 of what a bulk copy brought, "
                      "without having waited for phase 0 of gate 0"));
}

// ---- the gate

TEST_CASE("a gate beyond the last one") {
  CHECK_THAT(bulk_fault(init(14)), Contains("thread 0: initialises gate 14; gates are numbered from 0 to 13"));
  CHECK_THAT(bulk_fault(expect(14, 16)), Contains("announces bytes at gate 14; gates are numbered from 0 to 13"));
  CHECK_THAT(bulk_fault(wait(15, 0)), Contains("waits for gate 15; gates are numbered from 0 to 13"));
  CHECK_THAT(bulk_fault(copy(kTarget, 0, 16, -1)), Contains("starts a copy at gate 4294967295; gates are numbered"));
}

TEST_CASE("a gate that was not initialised") {
  CHECK_THAT(bulk_fault(expect(1, 16)),
             Contains("thread 0: announces bytes at gate 1, which has not been initialised"));
  CHECK_THAT(bulk_fault(wait(1, 0)), Contains("waits for gate 1, which has not been initialised"));
  CHECK_THAT(bulk_fault(copy(kTarget, 0, 16, 1)), Contains("starts a copy at gate 1, which has not been initialised"));
}

TEST_CASE("a gate used without a barrier after its initialisation") {
  CHECK_THAT(bulk_fault(by(0, "init", init(0) + expect(0, 16))),
             Contains("thread 0: announces bytes at gate 0 without a barrier since it was initialised"));
  CHECK_THAT(bulk_fault(by(0, "init", init(0)) + wait(0, 0)),
             Contains("waits for gate 0 without a barrier since it was initialised"));
  CHECK_THAT(bulk_fault(by(0, "init", init(0) + copy(kTarget, 0, 16, 0))),
             Contains("starts a copy at gate 0 without a barrier since it was initialised"));
}

TEST_CASE("a gate initialised by every thread, or again") {
  CHECK_THAT(bulk_fault(init(0)), Contains("thread 1: place a gate in shared memory at byte 16, which holds a gate"));
  CHECK_THAT(bulk_fault(by(0, "one", init(0)) + kBlockBarrier + by(0, "two", init(0))),
             Contains("thread 0: place a gate in shared memory at byte 16, which holds a gate"));
}

TEST_CASE("a gate without room for it") {
  RunOptions options;
  options.launch.shared_bytes = 76;
  CHECK_THAT(fault_of(by(0, "init", init(7)) + kEnd, options),
             Contains("place a gate in shared memory at byte 76, outside the 76 bytes of the block"));
}

TEST_CASE("the place of a gate is no memory") {
  const std::string ready = by(0, "init", init(1)) + kBlockBarrier;
  CHECK_THAT(bulk_fault(ready + "  %x = call float @burin_dev_shared_load(i32 24, i32 0)\n"),
             Contains("load from shared memory at byte 24, which holds a gate"));
  CHECK_THAT(bulk_fault(ready + "  call void @burin_dev_shared_store(i32 28, i32 0, float 1.0)\n"),
             Contains("store to shared memory at byte 28, which holds a gate"));
  CHECK_THAT(bulk_fault(ready + by(0, "init0", init(0)) + kBlockBarrier + by(0, "copy", copy(16, 0, 16, 1))),
             Contains("bulk copy into shared memory at byte 16, which holds a gate"));
}

TEST_CASE("bytes announced twice") {
  CHECK_THAT(bulk_fault(kStarted + kBlockBarrier + by(2, "again", expect(0, 16))),
             Contains("thread 2: announces bytes at gate 0 while nobody has waited for phase 0 (number 0), which "
                      "thread 0 announced"));
}

TEST_CASE("bytes announced by a thread that has not waited for the phase before") {
  CHECK_THAT(bulk_fault(started_by(3) + by(3, "wait", wait(0, 0)) + by(1, "next", expect(0, 16))),
             Contains("thread 1: announces bytes at gate 0 without having waited for phase 0 (number 0), nor passed a "
                      "barrier since one did"));
}

TEST_CASE("a copy started by a thread that has not waited for the phase before") {
  CHECK_THAT(bulk_fault(started_by(3) + by(3, "wait", wait(0, 0)) + by(1, "next", copy(kTarget + 16, 0, 16, 0))),
             Contains("thread 1: starts a copy at gate 0 without having waited for phase 0 (number 0), nor passed a "
                      "barrier since one did"));
}

TEST_CASE("a phase begun while another thread may still wait for the one before") {
  CHECK_THAT(bulk_fault(kStarted + wait(0, 0) + by(2, "next", expect(0, 16))),
             Contains("thread 2: race on gate 0: begins phase 1 (number 1) while several threads wait for the phase "
                      "before, without a barrier in between"));
  CHECK_THAT(bulk_fault(kStarted + wait(0, 0) + by(0, "next", expect(0, 16))),
             Contains("thread 3: waits for phase 0 of gate 0 when thread 0 has already announced the next one: if that "
                      "is complete first, the wait never ends"));
}

TEST_CASE("more bytes than a gate counts") {
  CHECK_THAT(bulk_fault(by(0, "init", init(0)) + kBlockBarrier + by(0, "expect", expect(0, 1 << 20))),
             Contains("announces 1048576 bytes at gate 0; at most 1048575"));
}

TEST_CASE("more bytes than were announced") {
  const std::string ready = by(0, "init", init(0)) + kBlockBarrier;
  CHECK_THAT(bulk_fault(ready + by(0, "go", expect(0, 16) + copy(kTarget, 0, 32, 0))),
             Contains("starts a copy of 32 bytes at gate 0, of whose 16 bytes 0 have been started"));
  CHECK_THAT(bulk_fault(ready + by(0, "go", copy(kTarget, 0, 32, 0) + expect(0, 16))),
             Contains("announces 16 bytes at gate 0, at which copies of 32 have been started"));
}

TEST_CASE("a wait for a phase that is none or has never begun") {
  const std::string ready = by(0, "init", init(0)) + kBlockBarrier;
  CHECK_THAT(bulk_fault(ready + wait(0, 2)), Contains("waits for phase 2 of gate 0; a phase is 0 or 1"));
  CHECK_THAT(bulk_fault(ready + wait(0, 1)),
             Contains("waits for phase 1 of gate 0, whose phase 0 has never been complete"));
}

TEST_CASE("a wait that never ends") {
  const std::string ready = by(0, "init", init(5)) + kBlockBarrier;
  CHECK_THAT(bulk_fault(ready + by(2, "wait", wait(5, 0))),
             Contains("block (0, 0), thread 2: deadlock: waits for phase 0 (number 0) of gate 5 for ever: no thread "
                      "announces its bytes"));
  CHECK_THAT(bulk_fault(ready + by(1, "start", expect(5, 32) + copy(kTarget, 0, 16, 5)) + wait(5, 0)),
             Contains("thread 0: deadlock: waits for phase 0 (number 0) of gate 5 for ever: of the 32 bytes that "
                      "thread 1 announced, 16 have been started"));
  // Announced only behind a barrier that the waiting thread does not reach.
  CHECK_THAT(bulk_fault(ready + by(2, "wait", wait(5, 0)) + kBlockBarrier + by(0, "start", expect(5, 0))),
             Contains("thread 2: deadlock"));
}

TEST_CASE("a wait for the wrong phase never ends") {
  CHECK_THAT(bulk_fault(kStarted + wait(0, 0) + kBlockBarrier + wait(0, 1)),
             Contains("deadlock: waits for phase 1 (number 1) of gate 0 for ever: no thread announces its bytes"));
}

TEST_CASE("a block ends with a bulk copy that nobody waited for") {
  CHECK_THAT(bulk_fault(kStarted), Contains("block (0, 0), thread 0: the block ended although nobody has waited for "
                                            "phase 0 (number 0) of gate 0, at which copies of 16 bytes arrive"));
  CHECK_THAT(bulk_fault(by(0, "init", init(0)) + kBlockBarrier + by(3, "expect", expect(0, 16))),
             Contains("thread 3: the block ended although nobody has waited for phase 0 (number 0) of gate 0, which "
                      "was announced with 16 bytes"));
}
