#include "ir/library_task.h"

#include <algorithm>
#include <numeric>
#include <random>

#include "test/catch.h"

using namespace burin;

namespace {

// Where an element of an nchw tensor lies in the layout, by what place_of() says of each place.
std::vector<std::int64_t> places(TensorLayout layout, std::int64_t images, std::int64_t channels, std::int64_t pixels) {
  std::vector<std::int64_t> at(static_cast<std::size_t>(images * channels * pixels), -1);
  for (std::int64_t i = 0; i < std::ssize(at); ++i) {
    const TensorPlace place = place_of(layout, channels, 1, pixels, i);
    at.at(static_cast<std::size_t>((place.image * channels + place.channel) * pixels + place.col)) = i;
  }
  return at;
}

// Moves the numbers of places, as a library does it.
std::vector<std::int64_t> moved(const MovedTensor& tensor, const std::vector<std::int64_t>& from) {
  std::vector<std::int64_t> to(from.size(), -1);
  std::vector<std::int64_t> at(tensor.axes.size(), 0);
  for (;;) {
    std::int64_t in = 0, out = 0;
    for (std::size_t i = 0; i < at.size(); ++i) {
      in += at[i] * tensor.axes[i].in_step;
      out += at[i] * tensor.axes[i].out_step;
    }
    to.at(static_cast<std::size_t>(out)) = from.at(static_cast<std::size_t>(in));
    std::size_t axis = at.size();
    while (axis > 0 && ++at[axis - 1] == tensor.axes[axis - 1].extent) at[--axis] = 0;
    if (axis == 0) return to;
  }
}

}  // namespace

TEST_CASE("library_task: between any two layouts each value gets to its place") {
  constexpr std::int64_t kImages = 16, kChannels = 24, kPixels = 5;
  for (const TensorLayout from : kTensorLayouts) {
    for (const TensorLayout to : kTensorLayouts) {
      INFO(to_string(from) << " -> " << to_string(to));
      const auto tensor = moved_between(from, to, kImages, kChannels, kPixels);
      REQUIRE(tensor);
      const auto source = places(from, kImages, kChannels, kPixels), target = places(to, kImages, kChannels, kPixels);
      std::vector<std::int64_t> numbers(source.size()), expected(source.size());
      for (std::size_t i = 0; i < source.size(); ++i) {
        numbers[static_cast<std::size_t>(source[i])] = static_cast<std::int64_t>(i);
        expected[static_cast<std::size_t>(target[i])] = static_cast<std::int64_t>(i);
      }
      CHECK(moved(*tensor, numbers) == expected);
    }
  }
}

TEST_CASE("library_task: what fills up images or channels is not moved") {
  CHECK(moved_between(TensorLayout::nchw, TensorLayout::n8c8hw, 8, 8, 4));
  CHECK_FALSE(moved_between(TensorLayout::nchw, TensorLayout::n8c8hw, 4, 8, 4));
  CHECK_FALSE(moved_between(TensorLayout::n8c8hw, TensorLayout::n2chw, 2, 8, 4));
  CHECK_FALSE(moved_between(TensorLayout::nchw, TensorLayout::nchw8, 1, 12, 4));
  CHECK(moved_between(TensorLayout::nchw, TensorLayout::nchw4, 1, 12, 4));
}

TEST_CASE("library_task: axes that are one become one") {
  const auto whole = moved_tensor({{2, 60, 60}, {3, 20, 20}, {4, 5, 5}, {5, 1, 1}});
  REQUIRE(whole);
  CHECK(whole->axes == std::vector<MovedAxis>{{120, 1, 1}});
  const auto transposed = moved_tensor({{7, 12, 12}, {1, 99, 0}, {3, 1, 4}, {4, 3, 1}});
  REQUIRE(transposed);
  CHECK(transposed->axes == std::vector<MovedAxis>{{7, 12, 12}, {3, 1, 4}, {4, 3, 1}});
  CHECK(moved_tensor({{1, 0, 0}})->axes == std::vector<MovedAxis>{{1, 1, 1}});
}

TEST_CASE("library_task: steps that libraries do not take") {
  CHECK_FALSE(moved_tensor({{3, -1, 1}}));                     // backwards
  CHECK_FALSE(moved_tensor({{3, 0, 1}}));                      // one value again and again
  CHECK_FALSE(moved_tensor({{0, 1, 1}}));                      // nothing
  CHECK_FALSE(moved_tensor({{3, std::int64_t{1} << 31, 1}}));  // beyond 32 bits
  CHECK_FALSE(moved_tensor({{2, 1 << 30, 2}, {2, 1 << 29, 1}, {1 << 30, 2, 3}}));
  CHECK(moved_tensor({{3, 1 << 20, 1}}));
}

TEST_CASE("library_task: in words") {
  PooledImage pooled{64, 112, 112, {.kernel_h = 3, .kernel_w = 3, .stride_h = 2, .stride_w = 2, .pad = {1, 1, 1, 1}}};
  CHECK(describe(LibraryTask(pooled)) == "64x112x112 -> 64x56x56, max 3x3, stride 2, pad 1");
  CHECK(describe(LibraryTask(SoftmaxImage{1000, 1})) == "softmax of 1000");
  CHECK(describe(LibraryTask(SoftmaxImage{21, 4096})) == "softmax of 21 channels, 4096 pixels");
  CHECK(describe(LibraryTask(MovedTensor{{{64, 49, 1}, {49, 1, 64}}})) == "moves 64x49, steps 49x1 -> 1x64");
  CHECK(describe(LibraryTask(ConvShape{})) == describe(ConvShape{}));
}
