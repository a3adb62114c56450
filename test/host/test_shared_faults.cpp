// Kernels that misuse shared memory, copies or barriers in one way each: the executor says in which, and where.

#include <fmt/format.h>

#include <bit>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "compiler/host/shared_memory.h"
#include "test/catch.h"
#include "test/host/kernel_text.h"

using burin_test::Contains;
using namespace burin_test;

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

TEST_CASE("what a thread has stored is multiplied by a warpgroup only where it was offered since") {
  burin::SharedMemory memory(kSharedBytes, kThreads);
  memory.begin_block();
  CHECK_FALSE(memory.store(8, 1, 1.0F));
  memory.offer(1);
  CHECK_FALSE(memory.store(12, 1, 1.0F));
  CHECK_FALSE(memory.store(16, 2, 1.0F));
  memory.begin_interval();
  CHECK_FALSE(memory.check_offered(8, 0));
  for (const std::uint32_t address : {12U, 16U}) {
    const auto fault = memory.check_offered(address, 0);
    REQUIRE(fault);
    CHECK_THAT(*fault, Contains(fmt::format("multiplies shared memory at byte {} with a warpgroup, which thread {} has "
                                            "stored without offering it to products",
                                            address, address == 12 ? 1 : 2)));
  }
  memory.offer(1);
  CHECK_FALSE(memory.check_offered(12, 0));
}

// ---- what lanes take that others have loaded

namespace {

// Thread 0 has loaded a word, and another one finds the same.
class TakenWord {
 public:
  TakenWord() {
    memory.begin_block();
    REQUIRE_FALSE(memory.store(kWord, 0, 1.0F));
    REQUIRE_FALSE(memory.store(kOther, 0, 0.0F));
    memory.begin_interval();
  }
  burin::SharedMemory::Needs loaded(std::uint32_t address = kWord) {
    float value = 0;
    REQUIRE_FALSE(memory.load(address, 0, value));
    burin::SharedMemory::Needs needs = memory.needs();
    memory.add(needs, address);
    return needs;
  }

  static constexpr std::uint32_t kWord = 128, kOther = 136, kCopied = 144;
  burin::SharedMemory memory = {256, kThreads};
};

}  // namespace

TEST_CASE("what a thread has loaded others may take until anything in shared memory changes") {
  using Change = std::function<std::optional<std::string>(burin::SharedMemory&)>;
  const std::pair<const char*, Change> changes[] = {
      {"store", [](auto& memory) { return memory.store(TakenWord::kOther, 1, 2.0F); }},
      {"half", [](auto& memory) { return memory.store_half(TakenWord::kOther, 1, 2); }},
      {"bits", [](auto& memory) { return memory.set_bits(TakenWord::kOther, 1, 2); }},
      {"copy", [](auto& memory) { return memory.copy(TakenWord::kCopied, 1, 2.0F); }},
      {"gate", [](auto& memory) { return memory.gate_init(0, 0); }},
      {"broadcast", [](auto& memory) { return memory.broadcast(); }},
      {"block",
       [](auto& memory) {
         memory.begin_block();
         return std::nullopt;
       }},
  };
  for (const auto& [name, change] : changes) {
    INFO(name);
    TakenWord word;
    const auto needs = word.loaded();
    CHECK(word.memory.meets(needs, 1));
    REQUIRE_FALSE(change(word.memory));
    CHECK_FALSE(word.memory.meets(needs, 1));
  }
  TakenWord word;
  REQUIRE_FALSE(word.memory.copy(TakenWord::kCopied, 1, 2.0F));
  word.memory.commit(1);
  const auto in_flight = word.loaded();
  word.memory.wait(1, 0);  // the copy has landed
  CHECK_FALSE(word.memory.meets(in_flight, 1));
  const auto needs = word.loaded();
  word.memory.begin_interval();
  CHECK(word.memory.meets(needs, 1));
}

TEST_CASE("what a thread has stored since the last barrier others may not take") {
  TakenWord word;
  REQUIRE_FALSE(word.memory.store(TakenWord::kOther, 0, 2.0F));
  const auto needs = word.loaded(TakenWord::kOther);
  CHECK_FALSE(word.memory.meets(needs, 1));
  CHECK_FALSE(word.memory.meets(needs, 0));
  word.memory.begin_interval();
  CHECK(word.memory.meets(word.loaded(TakenWord::kOther), 1));
}

TEST_CASE("what a bulk copy has brought is taken by threads that have waited for it") {
  constexpr float kValues[] = {1, 2, 3, 4};
  TakenWord word;
  burin::SharedMemory& memory = word.memory;
  REQUIRE_FALSE(memory.gate_init(0, 0));
  memory.begin_interval();
  REQUIRE_FALSE(memory.gate_expect(0, 16, 0));
  REQUIRE_FALSE(memory.bulk_copy(TakenWord::kCopied, kValues, 0, 0));
  bool open = false;
  REQUIRE_FALSE(memory.gate_wait(0, 0, 0, open));
  REQUIRE(open);
  const auto needs = word.loaded(TakenWord::kCopied);
  CHECK(memory.meets(needs, 0));
  CHECK_FALSE(memory.meets(needs, 1));
  REQUIRE_FALSE(memory.gate_wait(0, 0, 1, open));
  REQUIRE(open);
  CHECK(memory.meets(needs, 1));
  CHECK_FALSE(memory.meets(needs, 2));
}

TEST_CASE("two threads store the halves of a word") {
  burin::SharedMemory memory(kSharedBytes, kThreads);
  float value = 0;
  memory.begin_block();
  REQUIRE_FALSE(memory.store(8, 0, 0.0F));
  memory.begin_interval();
  REQUIRE_FALSE(memory.store_half(10, 1, 0x3F80));
  REQUIRE_FALSE(memory.store_half(8, 2, 0x0001));
  memory.begin_interval();
  REQUIRE_FALSE(memory.load(8, 3, value));
  CHECK(value == std::bit_cast<float>(0x3F800001U));
  memory.begin_interval();
  REQUIRE_FALSE(memory.store_half(8, 3, 0));
  memory.begin_interval();
  REQUIRE_FALSE(memory.load(8, 0, value));
  CHECK(value == 1.0F);
}

TEST_CASE("halves of a word that may not be stored") {
  burin::SharedMemory memory(kSharedBytes, kThreads);
  float value = 0;
  memory.begin_block();
  const auto fault = [](const std::optional<std::string>& found) { return found.value_or("none"); };
  CHECK_THAT(fault(memory.store_half(9, 0, 1)), Contains("misaligned store of a half to shared memory at byte 9"));
  CHECK_THAT(fault(memory.store_half(kSharedBytes, 0, 1)), Contains("outside the 64 bytes of the block"));
  CHECK_THAT(fault(memory.store_half(8, 0, 1)),
             Contains("at byte 8, in a word that no thread of the block has written as a whole"));
  REQUIRE_FALSE(memory.store(8, 0, 1.0F));
  CHECK_THAT(fault(memory.store_half(8, 1, 1)), Contains("race on shared memory at byte 8: store of a half to it"));
  CHECK_THAT(fault(memory.store_half(8, 0, 1)), Contains("a half stored after a store of the word by thread 0"));
  memory.begin_interval();
  REQUIRE_FALSE(memory.store_half(8, 1, 1));
  CHECK_THAT(fault(memory.store_half(8, 2, 1)), Contains("at byte 8: a half stored twice"));
  CHECK_THAT(fault(memory.load(8, 1, value)), Contains("of what a thread that stored a half wrote"));
  CHECK_THAT(fault(memory.store(8, 1, 1.0F)), Contains("written by a thread that stored a half"));
  memory.begin_interval();
  REQUIRE_FALSE(memory.load(8, 1, value));
  CHECK_THAT(fault(memory.store_half(10, 2, 1)), Contains("after a load by thread 1"));
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
