// Four words at once: what nchw4 is for.
#include <fmt/format.h>

#include "test/catch.h"
#include "test/host/kernel_text.h"

using namespace burin_test;

namespace {

// 4 channels in and out, both in nchw4: a pixel's channels are 16 bytes.
RunOptions four_channels() {
  RunOptions options;
  options.shape.in_channels = options.shape.out_channels = 4;
  options.input_layout = options.output_layout = burin::TensorLayout::nchw4;
  options.launch.shared_bytes = 4 * kThreads * 4;
  return options;
}

constexpr const char* kLoadPixel = R"(
  %off16 = shl i64 %off, 2
  %x = call <4 x float> @burin_dev_global_load4(ptr %in, i64 %off16)
)";

constexpr const char* kStorePixel = R"(
  call void @burin_dev_global_store4(ptr %out, i64 %off16, <4 x float> %q)
  ret void
)";

// This thread's four words of shared memory become those of its pixel.
constexpr const char* kShare = R"(
  %place = shl i32 %t, 4
  %w0 = extractelement <4 x float> %x, i32 0
  %w1 = extractelement <4 x float> %x, i32 1
  %w2 = extractelement <4 x float> %x, i32 2
  %w3 = extractelement <4 x float> %x, i32 3
  call void @burin_dev_shared_store(i32 %place, i32 0, float %w0)
  call void @burin_dev_shared_store(i32 %place, i32 4, float %w1)
  call void @burin_dev_shared_store(i32 %place, i32 8, float %w2)
  call void @burin_dev_shared_store(i32 %place, i32 12, float %w3)
  call void @burin_dev_barrier()
  %neighbour = xor i32 %place, 16
)";

float pixel_channel(int pixel, int channel) { return static_cast<float>(4 * pixel + channel + 1); }

}  // namespace

TEST_CASE("quads: loaded, changed and stored in their order") {
  const Run run = run_kernel(std::string(kLoadPixel) + R"(
  %a = extractelement <4 x float> %x, i32 1
  %s = fadd float %a, 1.5
  %q = insertelement <4 x float> %x, float %s, i32 2)" +
                                 kStorePixel,
                             four_channels());
  REQUIRE(run.fault.empty());
  for (int i = 0; i < kCols * 4; ++i) {
    const float expected = i % 4 == 2 ? pixel_channel(i / 4, 1) + 1.5F : pixel_channel(i / 4, i % 4);
    CHECK(run.output[static_cast<std::size_t>(i)] == expected);
  }
}

TEST_CASE("quads: of shared memory, on a condition too") {
  for (const std::string load : {"load4(", "load4_if(i32 1, "}) {
    const Run run = run_kernel(std::string(kLoadPixel) + kShare + "  %q = call <4 x float> @burin_dev_shared_" + load +
                                   "i32 %neighbour, i32 0)\n" + kStorePixel,
                               four_channels());
    REQUIRE(run.fault.empty());
    for (int i = 0; i < kCols * 4; ++i) {
      CHECK(run.output[static_cast<std::size_t>(i)] == pixel_channel(i / 4 ^ 1, i % 4));
    }
  }
}

TEST_CASE("quads: stored to shared memory") {
  const Run run = run_kernel(std::string(kLoadPixel) + R"(
  %place = shl i32 %t, 4
  call void @burin_dev_shared_store4(i32 %place, i32 0, <4 x float> %x)
  call void @burin_dev_barrier()
  %neighbour = xor i32 %place, 16
  %q = call <4 x float> @burin_dev_shared_load4(i32 %neighbour, i32 0)
)" + kStorePixel,
                             four_channels());
  REQUIRE(run.fault.empty());
  for (int i = 0; i < kCols * 4; ++i) {
    CHECK(run.output[static_cast<std::size_t>(i)] == pixel_channel(i / 4 ^ 1, i % 4));
  }
}

TEST_CASE("quads: copied to shared memory, or zeros") {
  const std::string valid = "  %odd = and i32 %t, 1\n  %valid = xor i32 %odd, 1\n";
  const Run run = run_kernel(valid + R"(
  %off16 = shl i64 %off, 2
  %place = shl i32 %t, 4
  call void @burin_dev_copy_async4(i32 %place, i32 0, ptr %in, i64 %off16, i32 %valid)
  call void @burin_dev_copy_commit()
  call void @burin_dev_copy_wait(i32 0)
  call void @burin_dev_barrier()
  %neighbour = xor i32 %place, 16
  %q = call <4 x float> @burin_dev_shared_load4(i32 %neighbour, i32 0)
)" + kStorePixel,
                             four_channels());
  REQUIRE(run.fault.empty());
  for (int i = 0; i < kCols * 4; ++i) {
    const int pixel = i / 4 ^ 1;
    CHECK(run.output[static_cast<std::size_t>(i)] == (pixel % 2 == 0 ? pixel_channel(pixel, i % 4) : 0));
  }
}

TEST_CASE("quads: where the condition does not hold, words that nobody wrote may be loaded and must not be used") {
  const Run run = run_kernel(std::string(kLoadPixel) + R"(
  %unused = call <4 x float> @burin_dev_shared_load4_if(i32 0, i32 0, i32 16)
  %q = fadd <4 x float> %x, zeroinitializer)" +
                                 kStorePixel,
                             four_channels());
  CHECK(run.fault.empty());
  const Run used = run_kernel(std::string(kLoadPixel) + R"(
  %unused = call <4 x float> @burin_dev_shared_load4_if(i32 0, i32 0, i32 16)
  %q = fadd <4 x float> %x, %unused)" +
                                  kStorePixel,
                              four_channels());
  for (const float value : used.output) CHECK(value != value);
}

TEST_CASE("quads: an address that is no multiple of 16 is a fault") {
  const RunOptions options = four_channels();
  CHECK_THAT(
      fault_of("  %x = call <4 x float> @burin_dev_global_load4(ptr %in, i64 8)\n  ret void", options),
      burin_test::Contains("misaligned load of four words at byte 8 of the input, which is not a multiple of 16"));
  CHECK_THAT(
      fault_of("  call void @burin_dev_global_store4(ptr %out, i64 20, <4 x float> zeroinitializer)\n  ret void",
               options),
      burin_test::Contains("misaligned store of four words at byte 20 of the output, which is not a multiple of 16"));
  CHECK_THAT(
      fault_of("  %x = call <4 x float> @burin_dev_shared_load4(i32 8, i32 4)\n  ret void", options),
      burin_test::Contains("misaligned load of four words of shared memory at byte 12, which is not a multiple of 16"));
  CHECK_THAT(fault_of("  %x = call <4 x float> @burin_dev_shared_load4_if(i32 0, i32 8, i32 4)\n  ret void", options),
             burin_test::Contains("misaligned load of four words of shared memory at byte 12"));
  CHECK_THAT(
      fault_of("  call void @burin_dev_shared_store4(i32 8, i32 4, <4 x float> zeroinitializer)\n  ret void", options),
      burin_test::Contains("misaligned store to four words of shared memory at byte 12"));
  const auto copy = [](const std::string& arguments) {
    return "  call void @burin_dev_copy_async4(" + arguments + ", i32 1)\n  ret void";
  };
  CHECK_THAT(fault_of(copy("i32 8, i32 0, ptr %in, i64 0"), options),
             burin_test::Contains("misaligned copy to four words of shared memory at byte 8"));
  CHECK_THAT(fault_of(copy("i32 0, i32 0, ptr %in, i64 8"), options),
             burin_test::Contains("misaligned copy of four words at byte 8 of the input"));
}

TEST_CASE("quads: each word is checked as by itself") {
  const RunOptions options = four_channels();
  CHECK_THAT(fault_of("  %x = call <4 x float> @burin_dev_global_load4(ptr %in, i64 128)\n  ret void", options),
             burin_test::Contains("load from input out of bounds: element 32, past the 32 of the launch"));
  const std::string half_written =
      "  call void @burin_dev_shared_store(i32 0, i32 0, float 1.0)\n"
      "  %x = call <4 x float> @burin_dev_shared_load4(i32 0, i32 0)\n";
  CHECK_THAT(fault_of(only_thread(0, half_written) + "  ret void", options), burin_test::Contains("byte 4"));
  const std::string twice =
      "  %off16 = shl i64 %off, 2\n"
      "  call void @burin_dev_global_store4(ptr %out, i64 %off16, <4 x float> zeroinitializer)\n"
      "  call void @burin_dev_global_store4(ptr %out, i64 %off16, <4 x float> zeroinitializer)\n  ret void";
  CHECK_THAT(fault_of(twice, options),
             burin_test::Contains("output element 0 (image 0, channel 0, row 0, col 0) a second"));
}
