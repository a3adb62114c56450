// What the blocks of a cluster send each other: kernels that do it rightly, and kernels that do it wrongly in one way
// each.
#include <fmt/format.h>

#include "test/catch.h"
#include "test/host/kernel_text.h"

using burin_test::Contains;
using namespace burin_test;

namespace {

// Behind the gates: what a block has, and where it receives what another one has.
constexpr int kOwn = 128, kReceived = 192, kSentBytes = 16;

Run run_two_blocks(const std::string& body) {
  RunOptions options;
  options.launch.slices = 2;
  options.launch.shared_bytes = 256;
  constexpr const char* kPairs = R"(
!nvvm.annotations = !{!0, !1, !2}
!0 = !{ptr @k, !"cluster_dim_x", i32 1}
!1 = !{ptr @k, !"cluster_dim_y", i32 2}
!2 = !{ptr @k, !"cluster_dim_z", i32 1}
)";
  return run_bitcode(assemble_kernel(body, kPairs), options);
}

std::string fault_of_two_blocks(const std::string& body) {
  const std::string fault = run_two_blocks(body).fault;
  CHECK_THAT(fault, burin_test::StartsWith("kernel 'k', block ("));
  return fault;
}

// Only where `condition` is true; `name` is unique in the kernel.
std::string where(const std::string& condition, const std::string& name, const std::string& body) {
  return fmt::format(
      "  %is_{0} = {1}\n  br i1 %is_{0}, label %do_{0}, label %go_{0}\ndo_{0}:\n{2}  br label %go_{0}\ngo_{0}:\n", name,
      condition, body);
}
std::string by_first_thread(const std::string& name, const std::string& body) {
  return where("icmp eq i32 %t, 0", name, body);
}
std::string in_block(int block, const std::string& name, const std::string& body) {
  return where(fmt::format("icmp eq i32 %y, {}", block), name, body);
}

const std::string kArrive = "  call void @burin_dev_cluster_arrive()\n";
const std::string kMeet = "  call void @burin_dev_cluster_meet()\n";
const std::string kOffer = "  call void @burin_dev_group_offer()\n";
const std::string kMeetThreads = "  call void @burin_dev_barrier()\n";
const std::string kReturn = "  ret void";
const std::string kInitGate = by_first_thread("init", "  call void @burin_dev_gate_init(i32 3)\n");
const std::string kWait = "  call void @burin_dev_gate_wait(i32 3, i32 0)\n";
std::string announce(int bytes = kSentBytes) {
  return by_first_thread("expect", fmt::format("  call void @burin_dev_gate_expect(i32 3, i32 {})\n", bytes));
}
std::string send(int source = kOwn, int target = kReceived, int bytes = kSentBytes, const std::string& rank = "%other",
                 int gate = 3) {
  return fmt::format("  call void @burin_dev_cluster_send(i32 0, i32 {}, i32 {}, i32 {}, i32 {}, i32 {})\n", source,
                     target, bytes, rank, gate);
}
std::string send_by_first_thread(const std::string& sent = send()) { return by_first_thread("send", sent); }

// Every thread stores (y + 1) * input.
const std::string kStoreOwnPart = fmt::format(R"(
  %other = xor i32 %y, 1
  %x = call float @burin_dev_global_load(ptr %in, i64 %off)
  %rank = uitofp i32 %y to float
  %factor = fadd float %rank, 1.0
  %own = fmul float %x, %factor
  call void @burin_dev_shared_store(i32 %t4, i32 {}, float %own)
)",
                                              kOwn);
// Up to where blocks may send what they have.
const std::string kReady = kInitGate + kArrive + kStoreOwnPart + kMeet + kOffer + kMeetThreads;
std::string load_received(const std::string& name) {
  return fmt::format("  %{} = call float @burin_dev_shared_load(i32 %t4, i32 {})\n", name, kReceived);
}

}  // namespace

TEST_CASE("cluster sends: each block gets what the other one has") {
  // Block 0 stores what it received, block 1's, and its own: 1 + 2 times the input.
  const Run run = run_two_blocks(kReady + announce() + send_by_first_thread() + kWait + kArrive + load_received("got") +
                                 "  %sum = fadd float %own, %got\n" +
                                 in_block(0, "store",
                                          "  call void @burin_dev_global_store(ptr %out, i64 %off, float "
                                          "%sum)\n") +
                                 kMeet + kReturn);
  REQUIRE(run.fault.empty());
  for (int i = 0; i < kCols; ++i) CHECK(run.output[static_cast<std::size_t>(i)] == 3 * static_cast<float>(i + 1));
}

TEST_CASE("cluster sends: one block alone waits for what the other one sends") {
  for (const int sender : {0, 1}) {
    const std::string sent = announce() + send_by_first_thread();
    const std::string received = by_first_thread("announce", "  call void @burin_dev_gate_expect(i32 3, i32 16)\n") +
                                 kWait + load_received("got") +
                                 "  call void @burin_dev_global_store(ptr %out, i64 %off, float %got)\n";
    const Run run = run_two_blocks(kReady + in_block(sender, "sender", send_by_first_thread()) +
                                   in_block(1 - sender, "receiver", received) + kArrive + kMeet + kReturn);
    REQUIRE(run.fault.empty());
    for (int i = 0; i < kCols; ++i) {
      CHECK(run.output[static_cast<std::size_t>(i)] == static_cast<float>((sender + 1) * (i + 1)));
    }
  }
}

TEST_CASE("cluster sends: what arrives is waited for") {
  const std::string sent = kReady + announce() + send_by_first_thread();
  CHECK_THAT(fault_of_two_blocks(sent + load_received("got") + kArrive + kMeet + kReturn),
             Contains("load from shared memory at byte"));
  CHECK_THAT(fault_of_two_blocks(sent + kArrive + kMeet + kReturn),
             Contains("none of its threads had waited at gate 3 for what they sent before it arrived"));
  CHECK_THAT(fault_of_two_blocks(kReady + announce() + kWait + kArrive + kMeet + kReturn),
             Contains("deadlock: waits for phase 0 (number 0) of gate 3 for ever: of the 16 bytes that thread 0 "
                      "announced, 0 have been started"));
  CHECK_THAT(fault_of_two_blocks(kReady + announce(2 * kSentBytes) + send_by_first_thread() + kWait + kArrive + kMeet +
                                 kReturn),
             Contains("of the 32 bytes that thread 0 announced, 16 have been started"));
}

TEST_CASE("cluster sends: who sends has met the others") {
  CHECK_THAT(fault_of_two_blocks(kInitGate + kArrive + kStoreOwnPart + kOffer + kMeetThreads + send_by_first_thread() +
                                 kMeet + kReturn),
             Contains("sends to another block before it has met the others of its cluster"));
  CHECK_THAT(fault_of_two_blocks(kStoreOwnPart + kMeet + kReturn), Contains("meets the others of its cluster without"));
  CHECK_THAT(fault_of_two_blocks(kArrive + kArrive + kMeet + kReturn),
             Contains("arrives at a meeting of its cluster without having met the others at the last one"));
  CHECK_THAT(fault_of_two_blocks(kArrive + kReturn), Contains("ended without having met the others"));
  CHECK_THAT(fault_of_two_blocks(kArrive + "  call void @burin_dev_cluster_barrier()\n" + kMeet + kReturn),
             Contains("comes to a cluster barrier without having met the others where it has arrived"));
  CHECK_THAT(fault_of_two_blocks(in_block(0, "arrive", kArrive + kMeet) +
                                 in_block(1, "barrier", "  call void @burin_dev_cluster_barrier()\n") + kReturn),
             Contains("divergence: "));
}

TEST_CASE("cluster sends: gates are those of the target, and their threads have arrived") {
  const std::string met = kArrive + kStoreOwnPart + kMeet + kOffer + kMeetThreads;
  CHECK_THAT(fault_of_two_blocks(met + send_by_first_thread() + kReturn),
             Contains("copy at gate 3, which has not been initialised"));
  CHECK_THAT(fault_of_two_blocks(kArrive + kInitGate + kStoreOwnPart + kMeet + kOffer + kMeetThreads +
                                 send_by_first_thread() + kReturn),
             Contains("copy at gate 3, which was initialised after its thread had arrived"));
  CHECK_THAT(
      fault_of_two_blocks(kReady + send_by_first_thread(send(kOwn, kReceived, kSentBytes, "%other", 14)) + kReturn),
      Contains("copy at gate 14; gates are numbered from 0 to 13"));
  CHECK_THAT(fault_of_two_blocks(kReady + announce() + send_by_first_thread(send() + send(kOwn, kReceived + 16)) +
                                 kWait + kReturn),
             Contains("have been started"));  // found where the second copy is, or the announcement after both
}

TEST_CASE("cluster sends: who has arrived is done with the others") {
  CHECK_THAT(fault_of_two_blocks(kReady + announce() + send_by_first_thread() + kArrive + kWait + load_received("got") +
                                 kMeet + kReturn),
             Contains("none of its threads had waited at gate 3 for what they sent before it arrived"));
  CHECK_THAT(fault_of_two_blocks(kReady + announce() + kArrive + send_by_first_thread() + kWait + kMeet + kReturn),
             Contains("sends to another block after it has arrived"));
  CHECK_THAT(fault_of_two_blocks(
                 kInitGate + kStoreOwnPart + "  call void @burin_dev_cluster_barrier()\n" + kArrive +
                 fmt::format("  %far = call float @burin_dev_cluster_load(i32 %t4, i32 {}, i32 %other)\n", kOwn) +
                 kMeet + kReturn),
             Contains("cluster load after the thread has arrived"));
}

TEST_CASE("cluster sends: an offer is seen behind a barrier, in whatever order threads run") {
  // Thread 0, which sends, runs first in every other interval.
  for (const bool more : {false, true}) {
    const std::string sent = kInitGate + kArrive + kStoreOwnPart + kMeet + (more ? kMeetThreads : std::string()) +
                             kMeetThreads + kOffer + announce() + send_by_first_thread() + kReturn;
    CHECK_THAT(fault_of_two_blocks(sent), Contains("has stored without offering it before a barrier"));
  }
}

TEST_CASE("cluster sends: where a copy comes from and where it goes") {
  const auto fault = [](const std::string& sent) { return fault_of_two_blocks(kReady + sent + kReturn); };
  CHECK_THAT(fault(send_by_first_thread(send(kOwn, kReceived, kSentBytes, "2"))),
             Contains("sends to the block of rank 2, the cluster has 2"));
  CHECK_THAT(fault(send_by_first_thread(send(kOwn, kReceived, kSentBytes, "%y"))), Contains("which is its own"));
  CHECK_THAT(fault(send_by_first_thread(send(kOwn + 4))), Contains("sends 16 bytes of shared memory from byte 132 on"));
  CHECK_THAT(fault(send_by_first_thread(send(kOwn, kReceived, 8))), Contains("both must be multiples of 16"));
  CHECK_THAT(fault(send_by_first_thread(send(kOwn, kReceived + 4))), Contains("misaligned copy into shared memory"));
  CHECK_THAT(fault(send_by_first_thread(send(kOwn, 256))), Contains("which does not fit the 256 bytes"));
  CHECK_THAT(fault(send_by_first_thread(send(kReceived))), Contains("which no thread of the block has written"));
  CHECK_THAT(fault(send_by_first_thread(send(kOwn, kOwn))),
             Contains("race on shared memory at byte 128: copy into it"));
  CHECK_THAT(fault(send_by_first_thread(send(kOwn, 32))), Contains("race on shared memory at byte "));
}

TEST_CASE("cluster sends: what is sent has been offered, behind a barrier, and stays as it is") {
  CHECK_THAT(fault_of_two_blocks(kInitGate + kArrive + kStoreOwnPart + kMeet + kMeetThreads + send_by_first_thread() +
                                 kReturn),
             Contains("has stored without offering it"));
  CHECK_THAT(
      fault_of_two_blocks(kInitGate + kArrive + kStoreOwnPart + kMeet + kOffer + send_by_first_thread() + kReturn),
      Contains("without a barrier in between"));
  const std::string sent = kReady + announce() + send_by_first_thread() + kWait + kMeetThreads;
  const std::string stored = fmt::format("  call void @burin_dev_shared_store(i32 %t4, i32 {}, float 1.0)\n", kOwn);
  CHECK_THAT(fault_of_two_blocks(sent + stored + kArrive + kMeet + kReturn),
             Contains("or a copy to it, without a cluster barrier or meeting in between"));
  CHECK_THAT(fault_of_two_blocks(sent + kReturn), Contains("may still be on its way to another block of its cluster"));
}

TEST_CASE("cluster sends: nobody has used where a copy goes since the arrival") {
  const std::string stored =
      fmt::format("  call void @burin_dev_shared_store(i32 %t4, i32 {}, float 1.0)\n", kReceived);
  CHECK_THAT(fault_of_two_blocks(kInitGate + kArrive + stored + kStoreOwnPart + kMeet + kOffer + kMeetThreads +
                                 send_by_first_thread() + kReturn),
             Contains("which is stored to in that block after it has arrived"));
  CHECK_THAT(fault_of_two_blocks(kInitGate + stored + kMeetThreads + kArrive + kStoreOwnPart + kMeet + kOffer +
                                 kMeetThreads + send_by_first_thread() + kReturn),
             Contains("words that bulk copies fill cannot be written by a thread before"));
}
