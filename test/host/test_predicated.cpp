// Accesses and multiply-adds that a condition leaves out.
#include <array>
#include <cmath>

#include "test/catch.h"
#include "test/host/kernel_text.h"

using burin_test::Contains;
using namespace burin_test;

namespace {

// Odd threads fulfil the condition. Output: fma_if(condition, activation, 0.1, input).
std::string conditional_kernel(const std::string& activation) {
  return R"(
  %x = call float @burin_dev_global_load(ptr %in, i64 %off)
  %condition = and i32 %t, 1
  %v = call float @burin_dev_fma_if(i32 %condition, float )" +
         activation + R"(, float 0x3FB99999A0000000, float %x)
  call void @burin_dev_global_store(ptr %out, i64 %off, float %v)
  ret void)";
}

}  // namespace

TEST_CASE("a multiply-add under a condition is fused, or leaves the sum as it is") {
  const Run run = run_kernel(conditional_kernel("%x"));
  REQUIRE(run.fault.empty());
  for (int i = 0; i < kCols; ++i) {
    const auto x = static_cast<float>(i + 1);
    CHECK(run.output[static_cast<std::size_t>(i)] == (i % 2 == 1 ? std::fma(x, 0.1F, x) : x));
  }
}

TEST_CASE("a multiply-add that is left out does not see its activation") {
  constexpr std::array<const char*, 3> kNoNumbers = {"0x7FF8000000000000", "0x7FF0000000000000", "0xFFF0000000000000"};
  for (const char* activation : kNoNumbers) {
    const Run run = run_kernel(conditional_kernel(activation));
    REQUIRE(run.fault.empty());
    for (int i = 0; i < kCols; ++i) {
      const float value = run.output[static_cast<std::size_t>(i)];
      if (i % 2 == 1) {
        CHECK_FALSE(std::isfinite(value));
      } else {
        CHECK(value == static_cast<float>(i + 1));
      }
    }
  }
}

TEST_CASE("any bit of a condition makes it hold") {
  const Run run = run_kernel(R"(
  %v = call float @burin_dev_fma_if(i32 -2147483648, float 2.0, float 3.0, float 1.0)
  call void @burin_dev_global_store(ptr %out, i64 %off, float %v)
  ret void)");
  REQUIRE(run.fault.empty());
  CHECK(run.output == std::vector<float>(kCols, 7.0F));
}

TEST_CASE("a load that is left out may find nothing written, and gives nothing to use") {
  const Run run = run_kernel(R"(
  %odd = and i32 %t, 1
  %writes = icmp ne i32 %odd, 0
  br i1 %writes, label %write, label %read
write:
  call void @burin_dev_shared_store(i32 %t4, i32 16, float 5.0)
  br label %read
read:
  %x = call float @burin_dev_shared_load_if(i32 %odd, i32 %t4, i32 16)
  call void @burin_dev_global_store(ptr %out, i64 %off, float %x)
  ret void)");
  REQUIRE(run.fault.empty());
  for (int i = 0; i < kCols; ++i) {
    const float value = run.output[static_cast<std::size_t>(i)];
    if (i % 2 == 1) {
      CHECK(value == 5.0F);
    } else {
      CHECK(std::isnan(value));
    }
  }
}

TEST_CASE("a load whose condition holds is checked like any other") {
  CHECK_THAT(fault_of("  %x = call float @burin_dev_shared_load_if(i32 1, i32 8, i32 0)\n  ret void"),
             Contains("load from shared memory at byte 8, which no thread of the block has written"));
}

TEST_CASE("a load that is left out still needs a place in shared memory") {
  CHECK_THAT(fault_of("  %x = call float @burin_dev_shared_load_if(i32 0, i32 60, i32 4)\n  ret void"),
             Contains("load from shared memory at byte 64, outside the 64 bytes of the block"));
  CHECK_THAT(fault_of("  %x = call float @burin_dev_shared_load_if(i32 0, i32 2, i32 0)\n  ret void"),
             Contains("misaligned load from shared memory at byte 2"));
}

TEST_CASE("a load from memory that is left out reads nothing, and gives zero") {
  const Run run = run_kernel(R"(
  %odd = and i32 %t, 1
  %even = xor i32 %odd, 1
  %far = mul i32 %even, 4096
  %beyond = zext i32 %far to i64
  %place = add i64 %off, %beyond
  %x = call float @burin_dev_global_load_if(i32 %odd, ptr %in, i64 %place)
  call void @burin_dev_global_store(ptr %out, i64 %off, float %x)
  ret void)");
  REQUIRE(run.fault.empty());
  for (int i = 0; i < kCols; ++i) {
    CHECK(run.output[static_cast<std::size_t>(i)] == (i % 2 == 1 ? static_cast<float>(i + 1) : 0.0F));
  }
  CHECK_THAT(fault_of("  %x = call float @burin_dev_global_load_if(i32 2, ptr %in, i64 4096)\n  ret void"),
             Contains("load"));
}
