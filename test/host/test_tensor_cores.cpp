// What the threads of a warp do together: rows that they load, and matrices that they multiply.
#include <fmt/format.h>

#include "test/catch.h"
#include "test/host/kernel_text.h"

using namespace burin_test;

namespace {

constexpr int kWarp = 32;

// One warp and a pixel for each of its threads.
RunOptions one_warp() {
  RunOptions options;
  options.shape.in_w = kWarp;
  options.launch.threads = kWarp;
  options.launch.shared_bytes = 1024;
  options.launch.tiles_per_image = 1;
  return options;
}

// Row r of eight halves has the bits 8 r to 8 r + 7, and lies at byte 128 + 16 r.
const std::string kStoreRows = R"(
  %row = mul i32 %t, 16
  %place = add i32 %row, 128
  %base = mul i32 %t, 524296
  %word0 = add i32 %base, 65536
  %word1 = add i32 %word0, 131074
  %word2 = add i32 %word1, 131074
  %word3 = add i32 %word2, 131074
  call void @burin_dev_shared_store_word(i32 %place, i32 0, i32 %word0)
  call void @burin_dev_shared_store_word(i32 %place, i32 4, i32 %word1)
  call void @burin_dev_shared_store_word(i32 %place, i32 8, i32 %word2)
  call void @burin_dev_shared_store_word(i32 %place, i32 12, i32 %word3)
  call void @burin_dev_barrier()
)";

std::string store_float(const std::string& value) {
  return fmt::format("  call void @burin_dev_global_store(ptr %out, i64 %off, float {})\n  ret void\n", value);
}

}  // namespace

TEST_CASE("tensor cores: lanes have two rows of a column") {
  for (unsigned word = 0; word < 4; ++word) {
    const Run run = run_kernel(kStoreRows +
                                   fmt::format(R"(
  %rows = call <4 x i32> @burin_dev_shared_load_rows(i32 %place, i32 0)
  %word = extractelement <4 x i32> %rows, i32 {}
  %value = uitofp i32 %word to float
)",
                                               word) +
                                   store_float("%value"),
                               one_warp());
    REQUIRE(run.fault == "");
    REQUIRE(run.output.size() == kWarp);
    for (unsigned lane = 0; lane < kWarp; ++lane) {
      const unsigned column = lane / 4, row = 8 * word + 2 * (lane % 4);
      CHECK(run.output[lane] == static_cast<float>(8 * row + column + 65536 * (8 * (row + 1) + column)));
    }
  }
}

TEST_CASE("tensor cores: rows are loaded from multiples of 16 bytes") {
  const std::string fault = fault_of(kStoreRows + R"(
  %rows = call <4 x i32> @burin_dev_shared_load_rows(i32 %place, i32 4)
  ret void
)",
                                     one_warp());
  CHECK_THAT(fault, burin_test::Contains("misaligned load of a row of four words of shared memory at byte"));
}

TEST_CASE("tensor cores: products are added to sums") {
  // A column of ones in FP16, 15360, and column g of b has g + 1 in all rows.
  const std::string b = R"(
  %g = lshr i32 %t, 2
  %g1 = add i32 %g, 1
  %x = uitofp i32 %g1 to half
  %bits = bitcast half %x to i16
  %low = zext i16 %bits to i32
  %high = shl i32 %low, 16
  %both = or i32 %low, %high
)";
  const Run dense = run_kernel(b + R"(
  %c = call <4 x float> @burin_dev_multiply_f16(<4 x i32> <i32 1006648320, i32 1006648320, i32 1006648320, i32 1006648320>, i32 %both, i32 %both, <4 x float> <float 1.0, float 2.0, float 3.0, float 4.0>)
  %v = extractelement <4 x float> %c, i32 1
)" + store_float("%v"),
                               one_warp());
  REQUIRE(dense.fault == "");
  for (int lane = 0; lane < kWarp; ++lane) {
    CHECK(dense.output[static_cast<std::size_t>(lane)] == 2.0F + 16.0F * static_cast<float>(2 * (lane % 4) + 2));
  }
  // Of each four columns the first two are stored: half of them count.
  const Run sparse = run_kernel(b + R"(
  %b1 = insertelement <4 x i32> poison, i32 %both, i32 0
  %b4 = shufflevector <4 x i32> %b1, <4 x i32> poison, <4 x i32> zeroinitializer
  %c = call <4 x float> @burin_dev_multiply_sparse_f16(<4 x i32> <i32 1006648320, i32 1006648320, i32 1006648320, i32 1006648320>, <4 x i32> %b4, <4 x float> <float 1.0, float 2.0, float 3.0, float 4.0>, i32 1145324612, i32 0)
  %v = extractelement <4 x float> %c, i32 2
)" + store_float("%v"),
                                one_warp());
  REQUIRE(sparse.fault == "");
  for (int lane = 0; lane < kWarp; ++lane) {
    CHECK(sparse.output[static_cast<std::size_t>(lane)] == 3.0F + 16.0F * static_cast<float>(2 * (lane % 4) + 1));
  }
}

TEST_CASE("tensor cores: of four columns the first that is stored is the smaller") {
  const std::string fault = fault_of(R"(
  %c = call <4 x float> @burin_dev_multiply_sparse_f16(<4 x i32> zeroinitializer, <4 x i32> zeroinitializer, <4 x float> zeroinitializer, i32 0, i32 0)
  ret void
)",
                                     one_warp());
  CHECK_THAT(fault, burin_test::Contains("stores columns 0 and 0 of four 0; the first must be the smaller"));
}

TEST_CASE("tensor cores: all threads of a warp come to the same instruction") {
  const std::string leaves = fault_of(R"(
  %leader = icmp eq i32 %t, 0
  br i1 %leader, label %leave, label %stay
leave:
  ret void
stay:
  %c = call <4 x float> @burin_dev_multiply_f16(<4 x i32> zeroinitializer, i32 0, i32 0, <4 x float> zeroinitializer)
  ret void
)",
                                      one_warp());
  CHECK_THAT(leaves, burin_test::Contains("waits for its warp, and thread 0 does not come to the same instruction"));
  const std::string differs = fault_of(R"(
  %leader = icmp eq i32 %t, 0
  br i1 %leader, label %one, label %other
one:
  %c = call <4 x float> @burin_dev_multiply_f16(<4 x i32> zeroinitializer, i32 0, i32 0, <4 x float> zeroinitializer)
  ret void
other:
  %d = call <4 x float> @burin_dev_multiply_bf16(<4 x i32> zeroinitializer, i32 0, i32 0, <4 x float> zeroinitializer)
  ret void
)",
                                       one_warp());
  CHECK_THAT(differs, burin_test::Contains("divergence: waits for its warp"));
}
