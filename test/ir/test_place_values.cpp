// Tensors from and to the memory of their buffers.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>

#include "ir/element_type.h"
#include "ir/place_values.h"
#include "test/catch.h"
#include "test/thrown.h"

using namespace burin;
using burin_test::error_of;

namespace {

// Two images of one tensor.
Program program_of(std::vector<std::int64_t> shape, TensorFormat format = {}) {
  Program program;
  program.batch = 2;
  program.buffers.push_back({.tensor = "t", .shape = std::move(shape), .format = format});
  complete(program);
  return program;
}

std::vector<float> counted(std::size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 0.0F);
  return values;
}

}  // namespace

TEST_CASE("place values: a whole buffer") {
  const Program program = program_of({2, 1, 2});
  const Place place = {0, 0, 16, 16, 1, 0};
  CHECK(words_until_end(program, place, 2) == 8);
  CHECK(read_place(program, place, 2, counted(8)) == counted(8));
}

TEST_CASE("place values: a slice of each image, and runs of one") {
  const Program program = program_of({4, 1, 2});
  const Place slice = {0, 8, 32, 8, 1, 0};
  CHECK(words_until_end(program, slice, 2) == 12);
  CHECK(read_place(program, slice, 2, counted(12)) == std::vector<float>{2, 3, 10, 11});
  const Place runs = {0, 4, 32, 4, 2, 16};
  CHECK(words_until_end(program, runs, 2) == 14);
  CHECK(read_place(program, runs, 2, counted(16)) == std::vector<float>{1, 5, 9, 13});
  std::vector<float> memory(16, -1.0F);
  write_place(program, runs, 2, std::vector<float>{7, 8, 9, 10}, memory);
  CHECK(read_place(program, runs, 2, memory) == std::vector<float>{7, 8, 9, 10});
  CHECK(std::count(memory.begin(), memory.end(), -1.0F) == 12);
}

TEST_CASE("place values: what a layout fills up is left out") {
  const Program program = program_of({3, 1, 2}, {ElementType::f32, TensorLayout::nchw4});
  const Place place = {0, 0, 32, 32, 1, 0};
  std::vector<float> memory(16);
  write_place(program, place, 2, counted(12), memory);
  CHECK(memory[0] == 0);
  CHECK(memory[1] == 2);  // the second channel of the first pixel
  CHECK(std::isnan(memory[3]));
  CHECK(read_place(program, place, 2, memory) == counted(12));
}

TEST_CASE("place values: of halves, two images share words") {
  const Program program = program_of({4, 1, 2}, {ElementType::f16, TensorLayout::n2chw});
  const Place slice = {0, 8, 32, 16, 1, 0};  // channels 1 and 2 of 4
  CHECK(words_until_end(program, slice, 2) == 6);
  CHECK(words_until_end(program, slice, 3) == 14);
  std::vector<float> memory(16, -1.0F);
  const std::vector<float> values = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};  // of three images
  write_place(program, slice, 3, values, memory);
  CHECK(read_place(program, slice, 3, memory) == values);
  CHECK(unpack_words(ElementType::f16, std::vector<float>{memory[2]}) == std::vector<float>{1, 5});
  CHECK(std::count(memory.begin(), memory.end(), -1.0F) == 8);
}

TEST_CASE("place values: of halves in n8c8hw, eight images lie side by side") {
  const Program program = program_of({10, 1, 2}, {ElementType::bf16, TensorLayout::n8c8hw});
  const Place slice = {0, 256, 512, 256, 1, 0};  // channels 8 and 9 of 10
  CHECK(words_until_end(program, slice, 8) == 128);
  CHECK(words_until_end(program, slice, 9) == 256);
  std::vector<float> memory(256, -1.0F);
  const std::vector<float> values = counted(36);  // of nine images
  write_place(program, slice, 9, values, memory);
  CHECK(read_place(program, slice, 9, memory) == values);
  // The second pixel of images 4 and 5, channel 9.
  CHECK(unpack_words(ElementType::bf16, std::vector<float>{memory[64 + 32 + 4 + 2]}) == std::vector<float>{19, 23});
  CHECK(std::count(memory.begin(), memory.end(), -1.0F) == 128);
  const Place first = {0, 0, 512, 256, 1, 0};  // the first eight channels
  const std::vector<float> more = counted(144);
  write_place(program, first, 9, more, memory);
  CHECK(read_place(program, first, 9, memory) == more);
  CHECK(read_place(program, slice, 9, memory) == values);
  const std::vector<float> all = counted(180);
  write_place(program, whole_place(program, program.buffers[0]), 9, all, memory);
  CHECK(read_place(program, slice, 9, memory) ==
        std::vector<float>{16, 17, 18,  19,  36,  37,  38,  39,  56,  57,  58,  59,  76,  77,  78,  79,  96,  97,
                           98, 99, 116, 117, 118, 119, 136, 137, 138, 139, 156, 157, 158, 159, 176, 177, 178, 179});
}

TEST_CASE("place values: filling channels of n8c8hw are zero, and what is not is a fault") {
  const Program program = program_of({10, 1, 2}, {ElementType::f16, TensorLayout::n8c8hw});
  const Place whole = whole_place(program, program.buffers[0]), slice = {0, 256, 512, 256, 1, 0};
  std::vector<float> memory(256, -1.0F);
  write_place(program, whole, 9, std::vector<float>(180, 3.0F), memory);
  CHECK(filling_fault(program, whole, 9, memory) == "");
  CHECK(filling_fault(program, slice, 9, memory) == "");
  // Images 10 and 11, of which there are none; then image 8.
  std::size_t word = 128 + 64 + 32 + 3 * 4;
  memory[word + 1] = pack_words(ElementType::f16, std::vector<float>{7, 7}).front();
  CHECK(filling_fault(program, whole, 9, memory) == "");
  memory[word] = pack_words(ElementType::f16, std::vector<float>{7, 7}).front();
  const std::string fault = ": 7, and what fills up channels in n8c8hw is zero";
  CHECK(filling_fault(program, whole, 9, memory) == "image 8, filling channel 11, row 0, col 1" + fault);
  CHECK(filling_fault(program, slice, 9, memory) == "image 8, filling channel 3, row 0, col 1" + fault);
  CHECK(filling_fault(program, Place{0, 0, 512, 256, 1, 0}, 9, memory) == "");
  const Program fours = program_of({3, 1, 2}, {ElementType::f32, TensorLayout::nchw4});
  CHECK(filling_fault(fours, whole_place(fours, fours.buffers[0]), 2, std::vector<float>(16, 1.0F)) == "");
}

TEST_CASE("place values: the place of a whole buffer") {
  Program program = program_of({4, 1, 2});
  program.buffers.push_back(program_of({3, 1, 2}, {ElementType::f32, TensorLayout::nchw4}).buffers[0]);
  program.buffers.push_back(program_of({4, 1, 2}, {ElementType::f16, TensorLayout::n2chw}).buffers[0]);
  CHECK(whole_place(program, program.buffers[0]) == Place{0, 0, 32, 32, 1, 0});
  CHECK(whole_place(program, program.buffers[1]) == Place{1, 0, 32, 32, 1, 0});
  CHECK(whole_place(program, program.buffers[2]) == Place{2, 0, 32, 32, 1, 0});
  program.buffers.push_back(program_of({4, 1, 2}, {ElementType::f16, TensorLayout::n8c8hw}).buffers[0]);
  CHECK(whole_place(program, program.buffers[3]) == Place{3, 0, 256, 256, 1, 0});
  CHECK(program.pieces(program.buffers[3], 8) == 1);
  CHECK(program.pieces(program.buffers[3], 9) == 2);
  CHECK(program.pieces(program.buffers[1], 3) == 3);
  CHECK(program.pieces(program.buffers[2], 3) == 2);
}

TEST_CASE("place values: a map is bytes, cell by cell") {
  // Of five channels: two cells of rows for each two images.
  Program program;
  program.batch = 3;
  program.buffers.push_back({.tensor = "t.activity", .shape = {5, 4, 4}, .map = ActivityMap{2, 2, 4}});
  complete(program);
  const Place place = whole_place(program, program.buffers[0]);
  CHECK(place == Place{0, 0, 10, 10, 1, 0});
  CHECK(program.pieces(program.buffer(place), 2) == 1);
  CHECK(words_until_end(program, place, 2) == 3);
  CHECK(words_until_end(program, place, 3) == 5);
  std::vector<float> memory(5, -1.0F);
  const std::vector<float> marks = {1, 0, 0, 1, 1, 0, 0, 0, 0, 7};
  write_place(program, place, 2, marks, memory);
  CHECK(read_place(program, place, 2, memory) == marks);
  CHECK(std::count(memory.begin(), memory.end(), -1.0F) == 2);
  CHECK(std::as_bytes(std::span(memory))[9] == std::byte{7});
  std::vector<float> both = marks;
  both.insert(both.end(), marks.begin(), marks.end());
  write_place(program, place, 3, both, memory);
  CHECK(read_place(program, place, 3, memory) == both);
  CHECK(error_of([&] { write_place(program, place, 3, marks, memory); }, ErrorKind::internal).find("10 marks") !=
        std::string::npos);
}

TEST_CASE("place values: loose halves lie one behind the other, whatever the number of an image") {
  for (const ElementType element : {ElementType::f16, ElementType::bf16}) {
    const Program program = program_of({3, 1, 1}, {element, TensorLayout::nchw});
    const Buffer& buffer = program.buffers[0];
    CHECK(buffer.bytes == 2 * 3 * 2);
    CHECK(program.bytes(buffer, 1) == 6);
    const Place place = whole_place(program, buffer);
    CHECK(place.run_bytes == 6);
    CHECK(words_until_end(program, place, 1) == 2);  // the second is half of one
    CHECK(words_until_end(program, place, 2) == 3);
    std::vector<float> memory(3, -1.0F);
    write_place(program, place, 1, std::vector<float>{1, 2, 3}, memory);
    CHECK(read_place(program, place, 1, memory) == std::vector<float>{1, 2, 3});
    CHECK(memory[2] == -1.0F);
    // What lies behind the last half is somebody else's.
    const std::uint16_t minus_one = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(-1.0F) >> 16);
    CHECK(std::bit_cast<std::uint32_t>(memory[1]) >> 16 == minus_one);
    write_place(program, place, 2, std::vector<float>{1, 2, 3, 4, 5, 1e9F}, memory);
    const std::vector<float> rounded_last = {1, 2, 3, 4, 5, rounded(element, 1e9F)};
    CHECK(read_place(program, place, 2, memory) == rounded_last);
    CHECK(unpack_words(element, memory) == rounded_last);  // two images are three whole words
  }
}
