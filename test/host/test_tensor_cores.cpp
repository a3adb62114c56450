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

namespace {

// Lane l has column l / 4 of rows l % 4 and 4 + l % 4, and of a sparse product's b 8 + l % 4 and 12 + l % 4. Row k of
// column g has 1 + g + 16 k, exact in TF32.
const std::string kColumnsInTf32 = R"(
  %g = lshr i32 %t, 2
  %row0 = and i32 %t, 3
  %row0.16 = shl i32 %row0, 4
  %g1 = add i32 %g, 1
  %n0 = add i32 %g1, %row0.16
  %n1 = add i32 %n0, 64
  %n2 = add i32 %n0, 128
  %n3 = add i32 %n0, 192
  %x0 = uitofp i32 %n0 to float
  %x1 = uitofp i32 %n1 to float
  %x2 = uitofp i32 %n2 to float
  %x3 = uitofp i32 %n3 to float
  %b0 = call i32 @burin_dev_tf32(float %x0)
  %b1 = call i32 @burin_dev_tf32(float %x1)
  %b2 = call i32 @burin_dev_tf32(float %x2)
  %b3 = call i32 @burin_dev_tf32(float %x3)
  %v0 = insertelement <4 x i32> poison, i32 %b0, i32 0
  %v1 = insertelement <4 x i32> %v0, i32 %b1, i32 1
  %v2 = insertelement <4 x i32> %v1, i32 %b2, i32 2
  %all = insertelement <4 x i32> %v2, i32 %b3, i32 3
)";

// Words of a, of which word `chosen` of lanes with t == `t` is one and all else zero.
std::string a_with_one(int chosen, int t) {
  return fmt::format(R"(
  %is = icmp eq i32 %row0, {}
  %one = select i1 %is, i32 1065353216, i32 0
  %a = insertelement <4 x i32> zeroinitializer, i32 %one, i32 {}
)",
                     t, chosen);
}

}  // namespace

TEST_CASE("tensor cores: TF32 has four rows of a column, and each word is a value") {
  // Word w of lane 4 g + t is row g + w % 2 * 8 and column t + w / 2 * 4 of a: sums get row k of b.
  for (int word = 0; word < 4; ++word) {
    for (int t = 0; t < 4; ++t) {
      const int sum = word % 2 * 2 + 1;  // column 2 t + 1 of that row
      const Run run = run_kernel(kColumnsInTf32 + a_with_one(word, t) +
                                     fmt::format(R"(
  %c = call <4 x float> @burin_dev_multiply_tf32(<4 x i32> %a, i32 %b0, i32 %b1, <4 x float> <float 0.5, float 0.5, float 0.5, float 0.5>)
  %v = extractelement <4 x float> %c, i32 {}
)",
                                                 sum) +
                                     store_float("%v"),
                                 one_warp());
      REQUIRE(run.fault == "");
      const int k = t + word / 2 * 4;
      for (int lane = 0; lane < kWarp; ++lane) {
        CHECK(run.output[static_cast<std::size_t>(lane)] == 0.5F + static_cast<float>(1 + 2 * (lane % 4) + 1 + 16 * k));
      }
    }
  }
}

TEST_CASE("tensor cores: of a sparse matrix in TF32 one of two columns is stored") {
  // Places of the first column of each two, and of the second, in the words of either pair of lanes.
  for (const int second : {0, 1}) {
    for (const int pair : {0, 1}) {
      for (int word = 0; word < 4; ++word) {
        for (int t = 0; t < 4; ++t) {
          const Run run = run_kernel(
              kColumnsInTf32 + a_with_one(word, t) +
                  fmt::format(R"(
  %lane.pair = lshr i32 %row0, 1
  %is.pair = icmp eq i32 %lane.pair, {}
  %places = select i1 %is.pair, i32 {}, i32 0
  %c = call <4 x float> @burin_dev_multiply_sparse_tf32(<4 x i32> %a, <4 x i32> %all, <4 x float> zeroinitializer, i32 %places, i32 {})
  %v = extractelement <4 x float> %c, i32 {}
)",
                              pair, second == 0 ? 0x44444444 : static_cast<int>(0xEEEEEEEE), pair, word % 2 * 2) +
                  store_float("%v"),
              one_warp());
          REQUIRE(run.fault == "");
          const int k = 2 * (t + word / 2 * 4) + second;
          for (int lane = 0; lane < kWarp; ++lane) {
            CHECK(run.output[static_cast<std::size_t>(lane)] == static_cast<float>(1 + 2 * (lane % 4) + 16 * k));
          }
        }
      }
    }
  }
}

TEST_CASE("tensor cores: places of two columns lie with the lane that has their half of the row") {
  // Lane 4 g of pair 0 has columns 0 to 7, lane 4 g + 1 the others; here the latter store the second of two.
  for (int t = 0; t < 4; ++t) {
    for (int word = 0; word < 4; ++word) {
      const Run run = run_kernel(kColumnsInTf32 + a_with_one(word, t) +
                                     fmt::format(R"(
  %is.later = icmp eq i32 %row0, 1
  %places = select i1 %is.later, i32 -286331154, i32 1145324612
  %c = call <4 x float> @burin_dev_multiply_sparse_tf32(<4 x i32> %a, <4 x i32> %all, <4 x float> zeroinitializer, i32 %places, i32 0)
  %v = extractelement <4 x float> %c, i32 {}
)",
                                                 word % 2 * 2) +
                                     store_float("%v"),
                                 one_warp());
      REQUIRE(run.fault == "");
      const int k = 2 * (t + word / 2 * 4) + (word >= 2 ? 1 : 0);
      for (int lane = 0; lane < kWarp; ++lane) {
        CHECK(run.output[static_cast<std::size_t>(lane)] == static_cast<float>(1 + 2 * (lane % 4) + 16 * k));
      }
    }
  }
}

TEST_CASE("tensor cores: what is multiplied in TF32 was rounded to it, and its places are two") {
  const std::string not_rounded = fault_of(R"(
  %c = call <4 x float> @burin_dev_multiply_tf32(<4 x i32> <i32 1065353217, i32 0, i32 0, i32 0>, i32 0, i32 0, <4 x float> zeroinitializer)
  ret void
)",
                                           one_warp());
  CHECK_THAT(not_rounded, burin_test::Contains("is multiplied in TF32, which it was not rounded to"));
  const std::string not_known = fault_of(R"(
  %c = call <4 x float> @burin_dev_multiply_sparse_tf32(<4 x i32> zeroinitializer, <4 x i32> zeroinitializer, <4 x float> zeroinitializer, i32 -1145324613, i32 0)
  ret void
)",
                                         one_warp());
  CHECK_THAT(not_known, burin_test::Contains("has the places 11 of two columns; 4 and 14 are known in TF32"));
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
