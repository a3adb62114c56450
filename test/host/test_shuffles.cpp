// Values that threads of a warp exchange.

#include "test/catch.h"
#include "test/host/kernel_text.h"

using namespace burin_test;

TEST_CASE("shuffles: each thread has its partner's value") {
  const Run run = run_kernel(R"(
  %x = call float @burin_dev_global_load(ptr %in, i64 %off)
  %other = call float @burin_dev_shuffle_xor(float %x, i32 2)
  %next = call float @burin_dev_shuffle_xor(float %other, i32 1)
  call void @burin_dev_global_store(ptr %out, i64 %off, float %next)
  ret void
)");
  CHECK(run.fault == "");
  CHECK(run.output == std::vector<float>{4, 3, 2, 1, 8, 7, 6, 5});
}

TEST_CASE("shuffles: a thread that has ended") {
  const std::string fault = fault_of(R"(
  call void @burin_dev_global_store(ptr %out, i64 %off, float 1.0)
  %leader = icmp eq i32 %t, 0
  br i1 %leader, label %leave, label %stay
leave:
  ret void
stay:
  %other = call float @burin_dev_shuffle_xor(float 1.0, i32 1)
  ret void
)");
  CHECK_THAT(fault, burin_test::Contains("thread 1: divergence: waits at a shuffle that thread 0, which has ended"));
}

TEST_CASE("shuffles: over different distances") {
  const std::string fault = fault_of(R"(
  call void @burin_dev_global_store(ptr %out, i64 %off, float 1.0)
  %low = and i32 %t, 2
  %distance = add i32 %low, 1
  %other = call float @burin_dev_shuffle_xor(float 1.0, i32 %distance)
  ret void
)");
  CHECK_THAT(fault, burin_test::Contains("thread 2: divergence: shuffles over a distance of 3, thread 0 over 1"));
}

TEST_CASE("shuffles: beyond the block") {
  const std::string fault = fault_of(R"(
  call void @burin_dev_global_store(ptr %out, i64 %off, float 1.0)
  %other = call float @burin_dev_shuffle_xor(float 1.0, i32 8)
  ret void
)");
  CHECK_THAT(fault, burin_test::Contains("thread 0: shuffles with thread 8, which its warp does not have"));
}

TEST_CASE("shuffles: they order nothing") {
  const std::string fault = fault_of(R"(
  call void @burin_dev_global_store(ptr %out, i64 %off, float 1.0)
  call void @burin_dev_shared_store(i32 %t4, i32 16, float 1.0)
  %other = call float @burin_dev_shuffle_xor(float 1.0, i32 1)
  %neighbour = xor i32 %t4, 4
  %x = call float @burin_dev_shared_load(i32 %neighbour, i32 16)
  ret void
)");
  CHECK_THAT(fault, burin_test::Contains("race"));
}
