// Boxes of tensors: what copies bring, on each side of the image too, and kernels that misuse them in one way each.
#include <fmt/format.h>

#include <vector>

#include "test/catch.h"
#include "test/host/kernel_text.h"

using burin_test::Contains;
using namespace burin;
using namespace burin_test;

namespace {

// Twelve channels, which are two octets, of 2x4 pixels of eight images; the outputs are the 64 words of two pixels that
// one block of as many threads finds in shared memory.
constexpr int kBoxRows = 2, kBoxCols = 4, kPixelWords = 32, kBoxTarget = 128, kBoxSize = 256;

RunOptions with_box(const TensorBox& box) {
  RunOptions options;
  options.shape.in_channels = 12;
  options.shape.in_h = kBoxRows;
  options.shape.in_w = kBoxCols;
  options.launch = {.threads = 2 * kPixelWords, .shared_bytes = kBoxTarget + 2 * kBoxSize, .tile_images = 8};
  options.input_layout = TensorLayout::n8c8hw;
  options.batch = 8;
  options.box = box;
  return options;
}
TensorBox box_of(int octets, int rows, int cols) {
  return {.image_rows = kBoxRows, .image_cols = kBoxCols, .octets = octets, .rows = rows, .cols = cols};
}

struct BoxStart {
  int col = 0, row = 0, octet = 0, images = 0;
};
std::string box_copy(const BoxStart& place, int target = kBoxTarget, const std::string& box = "%box") {
  return fmt::format("  call void @burin_dev_box_copy(i32 {}, i32 0, ptr {}, i32 {}, i32 {}, i32 {}, i32 {}, i32 0)\n",
                     target, box, place.col, place.row, place.octet, place.images);
}
std::string box_kernel(const std::string& copies, int announced = kBoxSize) {
  return text_of_kernel(fmt::format(R"(
  %is = icmp eq i32 %t, 0
  br i1 %is, label %begin, label %ready
begin:
  call void @burin_dev_prefetch_box(ptr %box)
  call void @burin_dev_gate_init(i32 0)
  br label %ready
ready:
  call void @burin_dev_barrier()
  br i1 %is, label %fill, label %use
fill:
  call void @burin_dev_gate_expect(i32 0, i32 {})
{}  br label %use
use:
  call void @burin_dev_gate_wait(i32 0, i32 0)
  %x = call float @burin_dev_shared_load(i32 %t4, i32 {})
  call void @burin_dev_global_store(ptr %out, i64 %off, float %x)
  ret void)",
                                    announced, copies, kBoxTarget),
                        "", kBox);
}

std::vector<float> copied(const TensorBox& box, const BoxStart& place) {
  const Run run = run_bitcode(assemble_text(box_kernel(box_copy(place))), with_box(box));
  REQUIRE(run.fault.empty());
  return run.output;
}
std::string box_fault(const std::string& copies, int announced = kBoxSize) {
  return run_bitcode(assemble_text(box_kernel(copies, announced)), with_box(box_of(1, 2, 1))).fault;
}

// The words of a pixel; of one outside, zeros.
void append_pixel(std::vector<float>& words, int octet, int row, int col, bool outside = false) {
  for (int i = 0; i < kPixelWords; ++i) {
    const int word = ((octet * kBoxRows + row) * kBoxCols + col) * kPixelWords + i;
    words.push_back(outside ? 0 : static_cast<float>(word + 1));
  }
}
std::vector<float> pixels(const BoxStart& first, bool first_outside, const BoxStart& second, bool second_outside) {
  std::vector<float> words;
  append_pixel(words, first.octet, first.row, first.col, first_outside);
  append_pixel(words, second.octet, second.row, second.col, second_outside);
  return words;
}

}  // namespace

TEST_CASE("boxes: rows, columns and octets, in this order") {
  CHECK(copied(box_of(1, 2, 1), {2, 0, 1}) == pixels({2, 0, 1}, false, {2, 1, 1}, false));
  CHECK(copied(box_of(1, 1, 2), {2, 1, 0}) == pixels({2, 1, 0}, false, {3, 1, 0}, false));
  CHECK(copied(box_of(2, 1, 1), {0, 1, 0}) == pixels({0, 1, 0}, false, {0, 1, 1}, false));
}

TEST_CASE("boxes: steps leave out what lies between") {
  TensorBox box = box_of(1, 1, 2);
  box.step_cols = 2;
  CHECK(copied(box, {1, 0, 0}) == pixels({1, 0, 0}, false, {3, 0, 0}, false));
  CHECK(copied(box, {-1, 0, 0}) == pixels({}, true, {1, 0, 0}, false));
  CHECK(copied(box, {2, 0, 0}) == pixels({2, 0, 0}, false, {}, true));
  box = box_of(1, 2, 1);
  box.step_rows = 3;
  CHECK(copied(box, {0, -2, 1}) == pixels({}, true, {0, 1, 1}, false));
}

TEST_CASE("boxes: a swizzled one has the places of a line in the order of its line of shared memory") {
  // Its lines are the second and the third one.
  TensorBox box = box_of(1, 1, 2);
  const std::vector<float> plain = copied(box, {1, 0, 0});
  box.swizzled = true;
  const std::vector<float> swizzled = copied(box, {1, 0, 0});
  REQUIRE(swizzled.size() == plain.size());
  for (std::size_t i = 0; i < plain.size(); ++i) {
    INFO("word " << i);
    const std::size_t line = kBoxTarget / 128 + i / kPixelWords, place = i / 4 % 8;
    CHECK(swizzled[i / kPixelWords * kPixelWords + (place ^ line % 8) * 4 + i % 4] == plain[i]);
  }
  CHECK(swizzled != plain);
}

TEST_CASE("boxes: zeros on each side of the image, behind the last octet and behind the batch") {
  CHECK(copied(box_of(1, 1, 2), {-1, 0, 0}) == pixels({}, true, {0, 0, 0}, false));
  CHECK(copied(box_of(1, 1, 2), {3, 0, 0}) == pixels({3, 0, 0}, false, {}, true));
  CHECK(copied(box_of(1, 2, 1), {1, -1, 0}) == pixels({}, true, {1, 0, 0}, false));
  CHECK(copied(box_of(1, 2, 1), {1, 1, 0}) == pixels({1, 1, 0}, false, {}, true));
  CHECK(copied(box_of(2, 1, 1), {1, 1, 1}) == pixels({1, 1, 1}, false, {}, true));
  CHECK(copied(box_of(2, 1, 1), {1, 1, -1}) == pixels({}, true, {1, 1, 0}, false));
  CHECK(copied(box_of(1, 2, 1), {0, 0, 0, 1}) == pixels({}, true, {}, true));
  CHECK(copied(box_of(1, 2, 1), {-2147483647, 2147483647, 0, -1}) == pixels({}, true, {}, true));
}

TEST_CASE("boxes: an image that is taken for one row") {
  TensorBox box = box_of(1, 1, 2);
  box.image_rows = 1;
  box.image_cols = kBoxRows * kBoxCols;
  CHECK(copied(box, {3, 0, 1}) == pixels({3, 0, 1}, false, {0, 1, 1}, false));
}

TEST_CASE("boxes: a target between lines") {
  CHECK_THAT(box_fault(box_copy({}, kBoxTarget + 16)),
             Contains("thread 0: misaligned copy of a box into shared memory at byte "
                      "144, which is not a multiple of 128"));
}

TEST_CASE("boxes: a target that does not fit the block") {
  CHECK_THAT(box_fault(box_copy({}, kBoxTarget + 3 * kPixelWords * 4)),
             Contains("bulk copy of 256 bytes into shared memory at byte 512, which does not fit the 640 bytes"));
}

TEST_CASE("boxes: what the kernel is given for something else is none") {
  CHECK_THAT(box_fault(box_copy({}, kBoxTarget, "%in")), Contains("which the kernel is not given"));
  CHECK_THAT(box_fault(box_copy({}, kBoxTarget, "null")),
             Contains("copy of a box at 0x0, which the kernel is not given"));
}

TEST_CASE("boxes: the gate counts what is filled, too") {
  CHECK_THAT(box_fault(box_copy({3, 1, 0}), kBoxSize / 2),
             Contains("starts a copy of 256 bytes at gate 0, of whose 128 bytes 0 have been started"));
  CHECK_THAT(box_fault(box_copy({9, 9, 9, 9}), 2 * kBoxSize),
             Contains("of the 512 bytes that thread 0 announced, 256 have been started"));
}

TEST_CASE("boxes: into what a copy is on its way to") {
  CHECK_THAT(box_fault(box_copy({}) + box_copy({}), 2 * kBoxSize),
             Contains("while a copy into it, issued by a bulk copy"));
}

TEST_CASE("boxes: before the launch is awaited") {
  CHECK_THAT(box_fault(box_copy({}) + "  call void @burin_dev_await_launch()\n"),
             Contains("copy of a box before the thread has awaited its launch"));
}

TEST_CASE("boxes: of a residual") {
  RunOptions options = with_box(box_of(1, 1, 2));
  options.shape.epilogue.residual = true;
  options.shape.out_channels = 8;
  options.output_layout = TensorLayout::n8c8hw;
  options.box->tensor = 2;
  const KernelForm form = form_of_row_kernel(options);
  REQUIRE(verify(form).empty());
  // The output is larger than what the kernel writes: what is missing is told after all else was right.
  const Run run = run_bitcode(assemble_text(box_kernel(box_copy({}))), options);
  CHECK_THAT(run.fault, Contains("was not written by any thread"));
  CHECK(run.output[0] == 100);
  CHECK(run.output[63] == 6400);
}

TEST_CASE("boxes: a kernel takes as many as its form has, by value") {
  const RunOptions options = with_box(box_of(1, 2, 1));
  const std::string parameters =
      "does not have the parameters (input, output, residual, partials, counters, box, batch)";
  for (const char* box :
       {"", ", ptr %box", ", ptr byval([15 x i64]) align 64 %box", ", ptr byval([16 x i64]) %box", ", i64 %box"}) {
    INFO(box);
    CHECK_THAT(refusal_of(assemble_text(text_of_kernel("  ret void", "", box)), options), Contains(parameters));
  }
  RunOptions without = options;
  without.box.reset();
  CHECK_THAT(refusal_of(assemble_text(text_of_kernel("  ret void", "", kBox)), without),
             Contains("does not have the parameters (input, output, residual, partials, counters, batch)"));
}
