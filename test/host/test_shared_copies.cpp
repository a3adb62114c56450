// Copies that the blocks of a cluster share: kernels that do it rightly, and kernels that misuse it in one way each.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "test/host/kernel_text.h"

using Catch::Contains;
using namespace burin_test;

namespace {

// Room for all gates, and 128 bytes behind them. Gate 0 counts bytes, gate 1 blocks.
constexpr int kTarget = 128, kBytes = 256;
constexpr int kBoth = 3;  // the ranks of a cluster of two

constexpr const char* kTwoBlocks = R"(
!nvvm.annotations = !{!0, !1, !2}
!0 = !{ptr @k, !"cluster_dim_x", i32 1}
!1 = !{ptr @k, !"cluster_dim_y", i32 2}
!2 = !{ptr @k, !"cluster_dim_z", i32 1}
)";

Run run_two(const std::string& body) {
  RunOptions options;
  options.launch.shared_bytes = kBytes;
  options.launch.slices = 2;
  return run_bitcode(assemble_kernel(body, kTwoBlocks), options);
}

std::string fault_of_two(const std::string& body) {
  const std::string fault = run_two(body + "  ret void").fault;
  CHECK_THAT(fault, Catch::StartsWith("kernel 'k', block ("));
  return fault;
}

// Runs `body` where the condition holds; `name` is unique in the kernel.
std::string where(const std::string& name, const std::string& condition, const std::string& body) {
  return fmt::format("{1}  br i1 %is_{0}, label %do_{0}, label %go_{0}\ndo_{0}:\n{2}  br label %go_{0}\ngo_{0}:\n",
                     name, condition, body);
}
// Only thread 0 of each block.
std::string once(const std::string& name, const std::string& body) {
  return where(name, fmt::format("  %is_{} = icmp eq i32 %t, 0\n", name), body);
}
// All threads, or thread 0, of the block of one rank.
std::string in_block(int rank, const std::string& name, const std::string& body) {
  return where(name, fmt::format("  %is_{} = icmp eq i32 %y, {}\n", name, rank), body);
}
std::string once_in_block(int rank, const std::string& name, const std::string& body) {
  return where(name,
               fmt::format("  %t_{0} = shl i32 %t, 8\n  %at_{0} = or i32 %t_{0}, %y\n  %is_{0} = icmp eq i32 %at_{0}, "
                           "{1}\n",
                           name, rank),
               body);
}

std::string expect(int bytes) { return fmt::format("  call void @burin_dev_gate_expect(i32 0, i32 {})\n", bytes); }
std::string wait(int phase) { return fmt::format("  call void @burin_dev_gate_wait(i32 0, i32 {})\n", phase); }
std::string await(int phase) { return fmt::format("  call void @burin_dev_gate_wait_blocks(i32 1, i32 {})\n", phase); }
std::string arrive(int rank) { return fmt::format("  call void @burin_dev_gate_arrive(i32 1, i32 {})\n", rank); }
std::string copy(int target, int source, int ranks = kBoth) {
  return fmt::format("  call void @burin_dev_bulk_copy_all(i32 {}, i32 0, ptr %in, i64 {}, i32 16, i32 0, i32 {})\n",
                     target, source, ranks);
}
std::string load(const std::string& name, int address) {
  return fmt::format("  %{} = call float @burin_dev_shared_load(i32 %t4, i32 {})\n", name, address);
}
const std::string kBarrier = "  call void @burin_dev_barrier()\n";
const std::string kMeet = "  call void @burin_dev_cluster_barrier()\n";
const std::string kInit =
    "  call void @burin_dev_gate_init(i32 0)\n  call void @burin_dev_gate_init_blocks(i32 1, i32 2)\n";
const std::string kReady = once("init", kInit) + kMeet;

// Each block brings half of 32 bytes to both.
std::string halves(const std::string& name) {
  return once(name, expect(32)) + once_in_block(0, name + "a", copy(kTarget, 0)) +
         once_in_block(1, name + "b", copy(kTarget + 16, 16));
}
// Each says to both that it has left the buffer.
const std::string kLeave = arrive(0) + arrive(1);

}  // namespace

// ---- right

TEST_CASE("shared copies: each block copies a part to both, again and again") {
  std::string body = kReady + halves("h0") + wait(0) + load("v0", kTarget + 16);
  for (int stage = 1; stage < 4; ++stage) {
    const std::string name = std::to_string(stage);
    body += kBarrier + once("leave" + name, kLeave + await((stage - 1) % 2)) + kBarrier + halves("h" + name) +
            wait(stage % 2) + load("v" + name, kTarget + (stage % 2 == 0 ? 16 : 0));
  }
  const Run run = run_two(body + in_block(0, "store", R"(
  %sum = call float @llvm.fma.f32(float %v3, float 100.0, float %v2)
  call void @burin_dev_global_store(ptr %out, i64 %off, float %sum)
)") + "  ret void");
  REQUIRE(run.fault.empty());
  for (int i = 0; i < kCols; ++i) {
    const int x = i % kThreads + 1;
    CHECK(run.output[static_cast<std::size_t>(i)] == static_cast<float>(x * 100 + x + kThreads));
  }
}

TEST_CASE("shared copies: what a block waits for may come from one that runs later") {
  for (const int from : {0, 1}) {
    const Run run = run_two(
        kReady + once("expect", expect(16)) + once_in_block(from, "copy", copy(kTarget, 16)) + wait(0) +
        load("x", kTarget) +
        in_block(0, "store", "  call void @burin_dev_global_store(ptr %out, i64 %off, float %x)\n") + "  ret void");
    REQUIRE(run.fault.empty());
    CHECK(run.output == std::vector<float>{5, 6, 7, 8, 5, 6, 7, 8});
  }
}

// ---- the copy

TEST_CASE("shared copies: into a buffer that the other block may not have left") {
  for (const char* order : {"before", "after"}) {
    const bool before = std::string(order) == "before";
    // The one that copies does not ask; the other still reads.
    const std::string fault = fault_of_two(
        kReady + once("first", expect(16)) + once_in_block(0, "copy0", copy(kTarget, 0)) + wait(0) + kBarrier +
        once("next", expect(16)) + kBarrier + once_in_block(before ? 0 : 1, "copy1", copy(kTarget, 0)) + wait(1));
    CHECK_THAT(fault, Contains("to block (0, "));
  }
  CHECK_THAT(fault_of_two(kReady + halves("h0") + wait(0) + load("x", kTarget) + kBarrier +
                          once_in_block(0, "copy", expect(16) + copy(kTarget, 0))),
             Contains("to block (0, 1): starts a copy"));
}

TEST_CASE("shared copies: over what the other block reads although its copies are over") {
  // The arrival comes before the barrier that follows the loads: only the arriving thread's own are behind it.
  const std::string fault = fault_of_two(kReady + halves("h0") + wait(0) + kBarrier + load("x", kTarget) +
                                         once("leave", kLeave + await(0)) + kBarrier + halves("h1") + wait(1));
  CHECK_THAT(fault, Contains("race on shared memory at byte 128: bulk copy into what the block may not have left"));
}

TEST_CASE("shared copies: over one in flight") {
  CHECK_THAT(fault_of_two(kReady + once_in_block(0, "one", copy(kTarget, 0, 2)) +
                          once_in_block(0, "two", copy(kTarget, 0, 2)) + wait(0)),
             Contains("to block (0, 1): bulk copy into shared memory at byte 128 while a copy into it"));
}

TEST_CASE("shared copies: over what a thread of the other block has written") {
  CHECK_THAT(fault_of_two(in_block(1, "write",
                                   fmt::format("  call void @burin_dev_shared_store(i32 %t4, i32 {}, float "
                                               "1.0)\n",
                                               kTarget)) +
                          kReady + once_in_block(0, "copy", copy(kTarget, 0, 2)) + kMeet),
             Contains("to block (0, 1): bulk copy into shared memory at byte 128, which thread 0 has written itself"));
}

TEST_CASE("shared copies: to nobody, or to a rank that there is not") {
  CHECK_THAT(fault_of_two(kReady + once("copy", copy(kTarget, 0, 0))), Contains("bulk copy to no block"));
  CHECK_THAT(fault_of_two(kReady + once("copy", expect(16) + copy(kTarget, 0, 5))),
             Contains("bulk copy to the block of rank 2, the cluster has 2"));
}

TEST_CASE("shared copies: to places that are none") {
  CHECK_THAT(fault_of_two(kReady + once_in_block(0, "copy", copy(kBytes, 0, 2)) + kMeet),
             Contains("to block (0, 1): bulk copy of 16 bytes into shared memory at byte 256, which does not fit"));
  CHECK_THAT(fault_of_two(kReady + once_in_block(0, "copy", copy(16, 0, 2)) + kMeet),
             Contains("to block (0, 1): bulk copy into shared memory at byte 16, which holds a gate"));
  CHECK_THAT(fault_of_two(kReady + once_in_block(0, "copy", copy(kTarget + 4, 0, 2)) + kMeet),
             Contains("misaligned bulk copy into shared memory at byte 132"));
}

TEST_CASE("shared copies: to a block that has not initialised its gate, or may not have") {
  CHECK_THAT(
      fault_of_two(once_in_block(0, "init", kInit) + kMeet + once_in_block(0, "copy", copy(kTarget, 0, 2)) + kMeet),
      Contains("to block (0, 1): starts a copy at gate 0, which has not been initialised"));
  // Each has met a barrier of its own alone.
  CHECK_THAT(fault_of_two(once("init", kInit) + kBarrier + once_in_block(1, "copy", copy(kTarget, 0, 1)) + kMeet),
             Contains("to block (0, 0): starts a copy at gate 0 without a barrier since it was initialised"));
}

TEST_CASE("shared copies: to a block that has ended") {
  for (const int early : {0, 1}) {
    const std::string fault = fault_of_two(kReady + where("end", fmt::format("  %is_end = icmp ne i32 %y, {}\n", early),
                                                          once("copy", expect(16) + copy(kTarget, 0)) + wait(0)));
    const bool known = fault.find("ended with its block") != std::string::npos ||
                       fault.find("the block ended although nobody has waited for phase 0") != std::string::npos;
    INFO(fault);
    CHECK(known);
  }
}

TEST_CASE("shared copies: more bytes than the other block expects") {
  CHECK_THAT(fault_of_two(kReady + once("expect", expect(16)) + kMeet +
                          once_in_block(0, "copy", copy(kTarget, 0, 2) + copy(kTarget + 16, 0, 2))),
             Contains("to block (0, 1): starts a copy of 16 bytes at gate 0, of whose 16 bytes 16 have been started"));
}

// ---- the gates that count blocks

TEST_CASE("shared copies: arrivals and bytes at the wrong kind of gate") {
  CHECK_THAT(fault_of_two(kReady + once("x", "  call void @burin_dev_gate_arrive(i32 0, i32 0)\n")),
             Contains("arrives at gate 0, which counts bytes"));
  CHECK_THAT(fault_of_two(kReady + once("x", "  call void @burin_dev_gate_wait_blocks(i32 0, i32 0)\n")),
             Contains("waits for gate 0, which counts bytes"));
  CHECK_THAT(fault_of_two(kReady + once("x", "  call void @burin_dev_gate_expect(i32 1, i32 16)\n")),
             Contains("announces bytes at gate 1, which counts blocks"));
  CHECK_THAT(fault_of_two(kReady + once("x", "  call void @burin_dev_gate_wait(i32 1, i32 0)\n")),
             Contains("waits for gate 1, which counts blocks"));
}

TEST_CASE("shared copies: gates for blocks that no cluster has") {
  for (const int blocks : {0, 9}) {
    CHECK_THAT(fault_of_two(once("x", fmt::format("  call void @burin_dev_gate_init_blocks(i32 1, i32 {})\n", blocks))),
               Contains(fmt::format("initialises gate 1 for {} blocks; a cluster has 1 to 8", blocks)));
  }
}

TEST_CASE("shared copies: arrivals that cannot be") {
  CHECK_THAT(fault_of_two(kReady + once("x", arrive(2))),
             Contains("arrives at a gate of the block of rank 2, the cluster has 2"));
  CHECK_THAT(fault_of_two(kReady + once("x", arrive(0) + arrive(0))),
             Contains("arrives at gate 1 a second time in its phase 0 (number 0)"));
  CHECK_THAT(fault_of_two(once("init", kInit) + kBarrier + once_in_block(1, "x", arrive(0)) + kMeet),
             Contains("of block (0, 0): arrives at gate 1 without a barrier since it was initialised"));
  CHECK_THAT(fault_of_two(kMeet + once("x", arrive(0))), Contains("arrives at gate 1, which has not been initialised"));
}

TEST_CASE("shared copies: a wait that arrivals have overtaken") {
  CHECK_THAT(fault_of_two(kReady + once("x", kLeave) + kMeet + once("y", kLeave) + kMeet),
             Contains("arrives as the last at gate 1 although nobody has waited for its phase 0 (number 0)"));
}

TEST_CASE("shared copies: a block ends while others arrive at its gates") {
  CHECK_THAT(fault_of_two(kReady + once("x", kLeave)),
             Contains("the block ended although nobody has waited for phase 0 (number 0) of gate 1"));
  std::string faults;
  for (const int early : {0, 1}) {
    faults += fault_of_two(kReady + in_block(1 - early, "x", kBarrier + once("y", arrive(early))));
  }
  CHECK_THAT(faults, Contains("ended with its block"));
}

TEST_CASE("shared copies: waits that never end") {
  CHECK_THAT(
      fault_of_two(kReady + once_in_block(0, "x", arrive(0) + await(0))),
      Contains("deadlock: waits for phase 0 (number 0) of gate 1 for ever: of the 2 blocks that must arrive, 1"));
  CHECK_THAT(fault_of_two(kReady + once("expect", expect(32)) + once_in_block(0, "copy", copy(kTarget, 0)) + wait(0)),
             Contains("deadlock: waits for phase 0 (number 0) of gate 0 for ever: of the 32 bytes"));
  CHECK_THAT(fault_of_two(kReady + once("x", await(1))),
             Contains("waits for phase 1 of gate 1, whose phase 0 has never been complete"));
  CHECK_THAT(fault_of_two(kReady + once("x", await(2))), Contains("waits for phase 2 of gate 1; a phase is 0 or 1"));
}
