// Words of two halves: what the primitives compute, and tensors in n2chw and n8c8hw.
#include <fmt/format.h>

#include <bit>

#include "ir/error.h"
#include "test/catch.h"
#include "test/host/kernel_text.h"

using namespace burin_test;

namespace {

// Every thread stores the i32 `value` to its word.
std::string store_word(const std::string& value) {
  return "  call void @burin_dev_global_store_word(ptr %out, i64 %off, i32 " + value + ")\n  ret void";
}

// What every thread stores, when it is the same.
std::uint32_t stored(const std::string& body, const std::string& value) {
  const Run run = run_kernel(body + store_word(value));
  CHECK(run.fault.empty());
  REQUIRE(run.output.size() == kCols);
  for (const float word : run.output) {
    CHECK(std::bit_cast<std::uint32_t>(word) == std::bit_cast<std::uint32_t>(run.output.front()));
  }
  return std::bit_cast<std::uint32_t>(run.output.front());
}

std::uint32_t computed(const std::string& call) { return stored("  %x = call i32 @burin_dev_" + call + "\n", "%x"); }

std::uint32_t unpacked(const std::string& call) {
  return stored("  %f = call float @burin_dev_" + call + "\n  %x = bitcast float %f to i32\n", "%x");
}

// Images of a row of kCols pixels.
RunOptions images(int batch, burin::TensorLayout layout) {
  RunOptions options;
  options.batch = batch;
  options.input_layout = options.output_layout = layout;
  options.launch.tile_images = images_together(layout);
  return options;
}
// Two pairs.
RunOptions three_images() { return images(3, burin::TensorLayout::n2chw); }

}  // namespace

TEST_CASE("halves: packed with rounding to nearest even, the first in the lower half") {
  CHECK(computed("f16_pack(float 1.0, float -2.0)") == 0xC0003C00);
  CHECK(computed("f16_pack(float 65536.0, float 0.0)") == 0x00007C00);
  CHECK(computed("bf16_pack(float 1.0, float -2.0)") == 0xC0003F80);
  CHECK(computed("bf16_pack(float 0x3FF0100000000000, float 0x3FF0300000000000)") == 0x3F823F80);  // ties
}

TEST_CASE("halves: unpacked") {
  constexpr const char* kWord = "i32 -1073726464";  // 0xC0003C00: 1 and -2
  CHECK(unpacked(fmt::format("f16_low({})", kWord)) == std::bit_cast<std::uint32_t>(1.0F));
  CHECK(unpacked(fmt::format("f16_high({})", kWord)) == std::bit_cast<std::uint32_t>(-2.0F));
}

TEST_CASE("halves: two products, two fused multiply-adds") {
  // 3 and -2, times 2 and 2, plus 1 and 0.5.
  const std::string words = fmt::format("i32 {}, i32 {}", 0xC0004200, 0x40004000);
  CHECK(computed("f16x2_mul(" + words + ")") == 0xC4004600);                                        // 6, -4
  CHECK(computed(fmt::format("f16x2_fma({}, i32 {})", words, 0x38003C00)) == 0xC3004700);           // 7, -3.5
  CHECK(computed(fmt::format("f16x2_mul(i32 {}, i32 {})", 0x80000000, 0x3C003C00)) == 0x80000000);  // 0, -0
}

TEST_CASE("halves: the larger of each, and of NaN and a number the number") {
  const auto larger = [](const char* type, std::uint32_t one, std::uint32_t other) {
    return computed(fmt::format("{}x2_max(i32 {}, i32 {})", type, one, other));
  };
  CHECK(larger("f16", 0xC0003C00, 0xBC004200) == 0xBC004200);   // -2 and 1, -1 and 3
  CHECK(larger("f16", 0xFC007E00, 0xC0003C00) == 0xC0003C00);   // -infinity and NaN
  CHECK(larger("f16", 0xFC003C00, 0x7E007C00) == 0xFC007C00);   // NaN and infinity
  CHECK(larger("bf16", 0xC0003F80, 0xBF804040) == 0xBF804040);  // -2 and 1, -1 and 3
  CHECK(larger("bf16", 0xFF807FC0, 0xC0003F80) == 0xC0003F80);
}

TEST_CASE("halves: words in shared memory") {
  const std::string body = R"(
  call void @burin_dev_shared_store(i32 %t4, i32 0, float 1.0)
  %a = call i32 @burin_dev_shared_load_word(i32 %t4, i32 0)
  %again = call i32 @burin_dev_shared_load_word_if(i32 1, i32 %t4, i32 0)
  %c = call i32 @burin_dev_shared_load_word_if(i32 0, i32 %t4, i32 16)
  %n = icmp eq i32 %c, -1
  %d = select i1 %n, i32 %again, i32 0
  %x = and i32 %a, %d
)";
  CHECK(stored(body, "%x") == std::bit_cast<std::uint32_t>(1.0F));
  CHECK_THAT(fault_of("  %a = call i32 @burin_dev_shared_load_word_if(i32 0, i32 64, i32 0)\n" + store_word("%a")),
             burin_test::Contains("shared"));
}

TEST_CASE("n2chw: an odd number of images takes whole pairs") {
  // Words from one buffer to the other: blocks 2 and 3 have the second pair.
  const std::string copy = "  %x = call i32 @burin_dev_global_load_word(ptr %in, i64 %off)\n" + store_word("%x");
  const Run run = run_kernel(copy, three_images());
  CHECK(run.fault.empty());
  REQUIRE(run.output.size() == 2 * kCols);
  for (std::size_t i = 0; i < run.output.size(); ++i) CHECK(run.output[i] == static_cast<float>(i + 1));
}

TEST_CASE("n2chw: a place names both images of a word") {
  const std::string first_pair = R"(
  %there = icmp ult i32 %b, 2
  br i1 %there, label %store, label %end
store:
  call void @burin_dev_global_store_word(ptr %out, i64 %off, i32 0)
  br label %end
end:
  ret void)";
  CHECK_THAT(fault_of(first_pair, three_images()),
             burin_test::Contains("output element 8 (images 2 and 3, channel 0, row 0, col 0) was not written"));
}

TEST_CASE("n8c8hw: a place names both images of a word") {
  CHECK_THAT(fault_of("  ret void", images(9, burin::TensorLayout::n8c8hw)),
             burin_test::Contains("output element 0 (images 0 and 1, channel 0, row 0, col 0) was not written"));
  const std::string fourth_word = R"(
  %far = add i64 %off, 12
  call void @burin_dev_global_store_word(ptr %out, i64 %far, i32 0)
  call void @burin_dev_global_store_word(ptr %out, i64 %far, i32 0)
  ret void)";
  CHECK_THAT(fault_of(fourth_word, images(8, burin::TensorLayout::n8c8hw)),
             burin_test::Contains("output element 3 (images 6 and 7, channel 0, row 0, col 0) a second time"));
}

TEST_CASE("n8c8hw: filling channels are written, and with zeros") {
  // Every thread stores `filling` to the first `words` words of its pixel's filling channels, and zeros to the channel
  // that there is.
  const auto body = [](int words, std::uint32_t filling) {
    std::string text = "  %spot = mul i64 %off, 32\n";
    for (int word = 0; word < 4 + words; ++word) {
      text += fmt::format(
          "  %at{0} = add i64 %spot, {1}\n  call void @burin_dev_global_store_word(ptr %out, i64 %at{0}, "
          "i32 {2})\n",
          word, 4 * word, word < 4 ? 0 : static_cast<std::int32_t>(filling));
    }
    return text + "  ret void";
  };
  const auto fault_with = [&](int words, std::uint32_t filling, int batch) {
    return run_kernel(body(words, filling), images(batch, burin::TensorLayout::n8c8hw)).fault;
  };
  CHECK(fault_with(28, 0, 7) == "");
  CHECK(fault_with(28, 0x80008000, 7) == "");  // as good as zeros
  CHECK_THAT(fault_with(0, 0, 8),
             burin_test::Contains("output element 4 (images 0 and 1, channel 1, row 0, col 0) was not written by any "
                                  "thread; 224 of 256 elements are missing"));
  const std::string nonzero = ", which fills up the channels and must be zero in n8c8hw";
  CHECK_THAT(fault_with(28, 0x3C003C00, 8),
             burin_test::Contains("(images 0 and 1, channel 1, row 0, col 0)" + nonzero));
  CHECK_THAT(fault_with(28, 0x7E00, 1), burin_test::Contains(nonzero));  // NaN, of image 0
  // Of images that fill up, anything: of one image, the second half of its words.
  CHECK(fault_with(28, 0x7E000000, 1) == "");
}

TEST_CASE("nchw8: what fills up a place is zero, also beside a channel that there is") {
  // Every thread stores the words of its pixel, of which the first has the one channel and another.
  const auto fault_with = [](std::uint32_t first, std::uint32_t filling, int batch = 1, int words = 4) {
    std::string text = "  %spot = mul i64 %off, 4\n";
    for (int word = 0; word < words; ++word) {
      text += fmt::format(
          "  %at{0} = add i64 %spot, {1}\n  call void @burin_dev_global_store_word(ptr %out, i64 %at{0}, "
          "i32 {2})\n",
          word, 4 * word, static_cast<std::int32_t>(word == 0 ? first : filling));
    }
    return run_kernel(text + "  ret void", images(batch, burin::TensorLayout::nchw8)).fault;
  };
  CHECK(fault_with(0x3C00, 0) == "");
  CHECK(fault_with(0x7E00, 0x80008000, 3) == "");  // NaN in the channel that there is; zeros with a sign
  const std::string nonzero = ", which fills up the channels and must be zero in nchw8";
  CHECK_THAT(fault_with(0x3C003C00, 0), burin_test::Contains("channels 0 and 1, row 0, col 0)" + nonzero));
  CHECK_THAT(fault_with(0x7E003C00, 0, 2), burin_test::Contains(nonzero));
  CHECK_THAT(fault_with(0x3C00, 0x3C00), burin_test::Contains("channels 2 and 3, row 0, col 0)" + nonzero));
  CHECK_THAT(fault_with(0x3C00, 0, 1, 3),
             burin_test::Contains("output element 3 (image 0, channels 6 and 7, row 0, col 0) was not written"));
}

TEST_CASE("n2chw: tensors of another size are refused") {
  RunOptions options = three_images();
  burin::HostKernel kernel(assemble_kernel(store_word("0")), "k", form_of_row_kernel(options));
  const std::vector<float> input(3 * kCols);
  std::vector<float> output(2 * kCols);
  try {
    kernel.run({3, input, output, {}});
    FAIL("it ran");
  } catch (const burin::Error& error) {
    CHECK(error.kind() == burin::ErrorKind::bad_input);
    CHECK_THAT(error.what(),
               burin_test::Contains("tensor 'input' has 24 words") && burin_test::Contains("needs 16 in n2chw"));
  }
}

namespace {

// Images of a row of so many loose halves.
RunOptions loose_row(int cols, int alignment, int batch = 1) {
  RunOptions options;
  options.shape.in_w = cols;
  options.batch = batch;
  options.loose = alignment;
  return options;
}

// Thread `pixel` of an image has the half of its pixel, in `%at`.
const std::string kHalfPlace = R"(
  %at = lshr i64 %off, 1
)";
const std::string kLoadHalf = kHalfPlace + "  %h = call i32 @burin_dev_global_load_half(ptr %in, i64 %at)\n";
const std::string kStoreHalf = "  call void @burin_dev_global_store_half(ptr %out, i64 %at, i32 %h)\n";

}  // namespace

TEST_CASE("loose halves: each is loaded and stored by itself") {
  const Run run = run_kernel(kLoadHalf + kStoreHalf + "  ret void", loose_row(8, 2));
  CHECK(run.fault.empty());
  // input[i] = i + 1, as words of two halves each.
  CHECK(run.output == std::vector<float>{1, 2, 3, 4});
}

TEST_CASE("loose halves: a word of two, where the tensor is aligned to words") {
  const std::string body = R"(
  %even = icmp ult i64 %off, 16
  br i1 %even, label %move, label %end
move:
  %x = call float @burin_dev_global_load(ptr %in, i64 %off)
  call void @burin_dev_global_store(ptr %out, i64 %off, float %x)
  br label %end
end:
  ret void)";
  const Run run = run_kernel(body, loose_row(8, 4));
  CHECK(run.fault.empty());
  CHECK(run.output == std::vector<float>{1, 2, 3, 4});
  CHECK_THAT(fault_of(body, loose_row(8, 2)), Contains("misaligned load from input of a whole word at byte 0, where "
                                                       "loose halves begin at multiples of 2"));
}

TEST_CASE("loose halves: what begins in the middle of a word is no word") {
  CHECK_THAT(fault_of(only_thread(0, "  %x = call float @burin_dev_global_load(ptr %in, i64 2)\n") + "  ret void",
                      loose_row(8, 4)),
             Contains("misaligned load from input of a whole word at byte 2"));
  CHECK_THAT(
      fault_of(only_thread(0, "  call void @burin_dev_global_store(ptr %out, i64 6, float 1.0)\n") + "  ret void",
               loose_row(8, 4)),
      Contains("misaligned store to output of a whole word at byte 6"));
  CHECK_THAT(fault_of(only_thread(0, "  %x = call i32 @burin_dev_global_load_half(ptr %in, i64 3)\n") + "  ret void",
                      loose_row(8, 4)),
             Contains("misaligned load of a half from input at byte 3, which is not a multiple of 2"));
}

TEST_CASE("loose halves: beyond the last of an odd number lies nothing") {
  CHECK_THAT(fault_of(kLoadHalf + "  ret void", loose_row(7, 2)),
             Contains("load of a half from input out of bounds: element 7, past the 7 of the launch"));
  // In the middle of a word that the tensor has half of.
  CHECK_THAT(
      fault_of(only_thread(0, "  call void @burin_dev_global_store_half(ptr %out, i64 14, i32 1)\n") + "  ret void",
               loose_row(7, 2)),
      Contains("store of a half to output out of bounds: element 7, past the 7 of the launch"));
  // Two images of seven begin where no word does.
  const Run run = run_kernel(R"(
  %is = icmp ult i32 %pixel, 7
  br i1 %is, label %move, label %end
move:
  %at = lshr i64 %off, 1
  %next = add i64 %at, 14
  %u = call i32 @burin_dev_global_load_half(ptr %in, i64 %at)
  %v = call i32 @burin_dev_global_load_half(ptr %in, i64 %next)
  call void @burin_dev_global_store_half(ptr %out, i64 %at, i32 %u)
  call void @burin_dev_global_store_half(ptr %out, i64 %next, i32 %v)
  br label %end
end:
  ret void)",
                             [] {
                               RunOptions options = loose_row(7, 2, 2);
                               options.launch.tile_images = 2;
                               return options;
                             }());
  CHECK(run.fault.empty());
  CHECK(run.output == std::vector<float>{1, 2, 3, 4, 5, 6, 7});
  CHECK_THAT(refusal_of(assemble_kernel("  ret void"), loose_row(7, 4)),
             Contains("the tensor 'input' is aligned to 4 bytes: the distances 7 between images"));
}

TEST_CASE("loose halves: each is written once, and all are") {
  const std::string half = "  call void @burin_dev_global_store_half(ptr %out, i64 2, i32 1)\n";
  const std::string twice =
      only_thread(0, "  call void @burin_dev_global_store(ptr %out, i64 0, float 1.0)\n" + half) + "  ret void";
  CHECK_THAT(fault_of(twice, loose_row(8, 4)), Contains("store to output element ") && Contains("a second time"));
  const std::string all_but_one = kLoadHalf + R"(
  %is = icmp ne i64 %off, 12
  br i1 %is, label %store, label %end
store:
  call void @burin_dev_global_store_half(ptr %out, i64 %at, i32 %h)
  br label %end
end:
  ret void)";
  CHECK_THAT(fault_of(all_but_one, loose_row(8, 2)),
             Contains("output element 3 (image 0, channel 0, row 0, col 3) was not written") &&
                 Contains("1 of 8 elements are missing"));
}

TEST_CASE("loose halves: of other tensors no half is accessed by itself") {
  CHECK_THAT(fault_of(kLoadHalf + "  ret void"),
             Contains("load of a half from input, which is accessed in whole words"));
  CHECK_THAT(fault_of(kHalfPlace + "  call void @burin_dev_global_store_half(ptr %out, i64 0, i32 1)\n  ret void"),
             Contains("store of a half to output, which is accessed in whole words"));
}
