// What the threads of a warp tell each other: votes, and barriers of their own.
#include <fmt/format.h>

#include "test/catch.h"
#include "test/host/kernel_text.h"

using namespace burin_test;

namespace {

constexpr int kLanes = 32;

// Two warps and a pixel for each of their threads.
RunOptions two_warps() {
  RunOptions options;
  options.shape.in_w = 2 * kLanes;
  options.launch.threads = 2 * kLanes;
  options.launch.shared_bytes = 1024;
  options.launch.tiles_per_image = 1;
  return options;
}

// Each thread stores its number behind byte 256, where something is since a barrier, `between`, and writes what the
// thread `distance` away has stored.
std::string exchange(const std::string& between, int distance) {
  return fmt::format(R"(
  call void @burin_dev_shared_store(i32 %t4, i32 256, float 1000.0)
  call void @burin_dev_barrier()
  %value = uitofp i32 %t to float
  call void @burin_dev_shared_store(i32 %t4, i32 256, float %value)
{}
  %partner = xor i32 %t, {}
  %place = shl i32 %partner, 2
  %x = call float @burin_dev_shared_load(i32 %place, i32 256)
  call void @burin_dev_global_store(ptr %out, i64 %off, float %x)
  ret void
)",
                     between, distance);
}

const std::string kWarpBarrier = "  call void @burin_dev_warp_barrier()";

}  // namespace

TEST_CASE("warps: each thread has a bit of its warp's vote") {
  const Run run = run_kernel(R"(
  %odd = and i32 %t, 1
  %second = icmp uge i32 %t, 32
  %condition = select i1 %second, i32 %odd, i32 %t
  %bits = call i32 @burin_dev_ballot(i32 %condition)
  %low = and i32 %bits, 65535
  %value = uitofp i32 %low to float
  call void @burin_dev_global_store(ptr %out, i64 %off, float %value)
  ret void
)",
                             two_warps());
  CHECK(run.fault == "");
  REQUIRE(run.output.size() == 2 * kLanes);
  CHECK(run.output[5] == 0xFFFE);   // all but the first thread of the first warp
  CHECK(run.output[40] == 0xAAAA);  // the odd ones of the second
}

TEST_CASE("warps: a vote that a thread does not come to") {
  const std::string fault = fault_of(R"(
  call void @burin_dev_global_store(ptr %out, i64 %off, float 1.0)
  %leader = icmp eq i32 %t, 0
  br i1 %leader, label %leave, label %stay
leave:
  ret void
stay:
  %bits = call i32 @burin_dev_ballot(i32 1)
  ret void
)",
                                     two_warps());
  CHECK_THAT(fault, burin_test::Contains("divergence: waits for its warp, and thread 0 does not come"));
}

TEST_CASE("warps: a vote orders nothing") {
  const std::string fault = fault_of(exchange("  %bits = call i32 @burin_dev_ballot(i32 1)", 1), two_warps());
  CHECK_THAT(fault, burin_test::Contains("race on shared memory"));
}

TEST_CASE("warps: their barrier orders loads behind stores") {
  const Run run = run_kernel(exchange(kWarpBarrier, 3), two_warps());
  CHECK(run.fault == "");
  REQUIRE(run.output.size() == 2 * kLanes);
  CHECK(run.output[0] == 3);
  CHECK(run.output[61] == 62);
}

TEST_CASE("warps: their barrier does not order what another warp does") {
  CHECK_THAT(fault_of(exchange(kWarpBarrier, 32), two_warps()), burin_test::Contains("race on shared memory"));
}

TEST_CASE("warps: their barrier orders stores behind loads, and behind stores") {
  const std::string twice = R"(
  call void @burin_dev_warp_barrier()
  %other = xor i32 %t, 1
  %other4 = shl i32 %other, 2
  %seen = call float @burin_dev_shared_load(i32 %other4, i32 256)
)";
  const std::string again = R"(
  %more = fadd float %seen, 100.0
  %third = xor i32 %t, 2
  %third4 = shl i32 %third, 2
  call void @burin_dev_shared_store(i32 %third4, i32 256, float %more)
)";
  const Run run = run_kernel(exchange(twice + kWarpBarrier + again + kWarpBarrier, 0), two_warps());
  CHECK(run.fault == "");
  REQUIRE(run.output.size() == 2 * kLanes);
  CHECK(run.output[0] == 103);  // thread 2's, which has read thread 3's
  CHECK_THAT(fault_of(exchange(twice + again + kWarpBarrier, 0), two_warps()),
             burin_test::Contains("race on shared memory"));
}

TEST_CASE("warps: a barrier that a thread does not come to") {
  const std::string fault = fault_of(R"(
  call void @burin_dev_global_store(ptr %out, i64 %off, float 1.0)
  %leader = icmp eq i32 %t, 33
  br i1 %leader, label %leave, label %stay
leave:
  ret void
stay:
  call void @burin_dev_warp_barrier()
  ret void
)",
                                     two_warps());
  CHECK_THAT(fault, burin_test::Contains("divergence: waits for its warp, and thread 33 does not come"));
}
