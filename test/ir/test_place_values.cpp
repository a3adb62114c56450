// Tensors from and to the memory of their buffers.

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ir/place_values.h"
#include "test/catch.h"

using namespace burin;

namespace {

Program plan_of(std::vector<std::int64_t> shape, TensorLayout layout = TensorLayout::nchw,
                    ElementType element = ElementType::f32) {
  Program plan;
  plan.batch = 2;
  plan.buffers.push_back({"t", std::move(shape), BufferHome::arena, -1, element, layout, 0, 0, 0, 0});
  return plan;
}

std::vector<float> counted(std::size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 0.0F);
  return values;
}

}  // namespace

TEST_CASE("place values: a whole buffer") {
  const Program plan = plan_of({2, 1, 2});
  const Place place = {0, 0, 16, 16, 1, 0};
  CHECK(words_until_end(plan, place, 2) == 8);
  CHECK(read_place(plan, place, 2, counted(8)) == counted(8));
}

TEST_CASE("place values: a slice of each image, and runs of one") {
  const Program plan = plan_of({4, 1, 2});
  const Place slice = {0, 8, 32, 8, 1, 0};
  CHECK(words_until_end(plan, slice, 2) == 12);
  CHECK(read_place(plan, slice, 2, counted(12)) == std::vector<float>{2, 3, 10, 11});
  const Place runs = {0, 4, 32, 4, 2, 16};
  CHECK(words_until_end(plan, runs, 2) == 14);
  CHECK(read_place(plan, runs, 2, counted(16)) == std::vector<float>{1, 5, 9, 13});
  std::vector<float> memory(16, -1.0F);
  write_place(plan, runs, 2, std::vector<float>{7, 8, 9, 10}, memory);
  CHECK(read_place(plan, runs, 2, memory) == std::vector<float>{7, 8, 9, 10});
  CHECK(std::count(memory.begin(), memory.end(), -1.0F) == 12);
}

TEST_CASE("place values: what a layout fills up is left out") {
  const Program plan = plan_of({3, 1, 2}, TensorLayout::nchw4);
  const Place place = {0, 0, 32, 32, 1, 0};
  std::vector<float> memory(16);
  write_place(plan, place, 2, counted(12), memory);
  CHECK(memory[0] == 0);
  CHECK(memory[1] == 2);  // the second channel of the first pixel
  CHECK(std::isnan(memory[3]));
  CHECK(read_place(plan, place, 2, memory) == counted(12));
}

TEST_CASE("place values: of halves, two images share words") {
  const Program plan = plan_of({4, 1, 2}, TensorLayout::n2chw, ElementType::f16);
  const Place slice = {0, 8, 32, 16, 1, 0};  // channels 1 and 2 of 4
  CHECK(words_until_end(plan, slice, 2) == 6);
  CHECK(words_until_end(plan, slice, 3) == 14);
  std::vector<float> memory(16, -1.0F);
  const std::vector<float> values = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};  // of three images
  write_place(plan, slice, 3, values, memory);
  CHECK(read_place(plan, slice, 3, memory) == values);
  CHECK(unpack_words(ElementType::f16, std::vector<float>{memory[2]}) == std::vector<float>{1, 5});
  CHECK(std::count(memory.begin(), memory.end(), -1.0F) == 8);
}
