// Zeros that are made up: as many as were asked for, and where their pattern has them.
#include "compiler/synthetic_zeros.h"

#include <algorithm>
#include <set>
#include <vector>

#include "ir/error.h"
#include "test/catch.h"
#include "test/thrown.h"

using namespace burin;
using namespace burin_test;

namespace {

constexpr ZeroPattern kPatterns[] = {ZeroPattern::random, ZeroPattern::channels, ZeroPattern::blobs, ZeroPattern::dead};
constexpr int kChannels = 24, kRows = 13, kCols = 11, kImages = 2;
constexpr std::size_t kPlane = kRows * kCols, kImage = kChannels * kPlane;

std::vector<float> with(const SyntheticZeros& zeros, std::uint64_t seed = 5) {
  std::vector<float> values(kImages * kImage, 3.0F);
  set_zeros(zeros, values, kChannels, kRows, kCols, seed);
  return values;
}

std::ptrdiff_t zeros_of_image(const std::vector<float>& values, std::size_t image) {
  const auto first = values.begin() + static_cast<std::ptrdiff_t>(image * kImage);
  return std::count(first, first + kImage, 0.0F);
}

int dead_channels(const std::vector<float>& values) {
  int dead = 0;
  for (std::size_t first = 0; first < values.size(); first += kPlane) {
    const auto begin = values.begin() + static_cast<std::ptrdiff_t>(first);
    dead += std::all_of(begin, begin + kPlane, [](float value) { return value == 0; });
  }
  return dead;
}

ActivationZeros counted(const std::vector<float>& values) {
  ZeroCounter counter;
  counter.add(std::span<const float>(values), kPlane);
  return counter.zeros();
}

}  // namespace

TEST_CASE("synthetic zeros: each image has its share, and the other values stay") {
  for (const ZeroPattern pattern : kPatterns) {
    for (const double share : {0.0, 0.33, 0.8, 1.0}) {
      const std::vector<float> values = with({pattern, share});
      for (std::size_t image = 0; image < kImages; ++image) {
        INFO(to_string(pattern) << " " << share);
        CHECK(zeros_of_image(values, image) == std::llround(share * kImage));
      }
      CHECK(std::ranges::all_of(values, [](float value) { return value == 0 || value == 3; }));
    }
  }
}

TEST_CASE("synthetic zeros: the seed says where they are") {
  for (const ZeroPattern pattern : kPatterns) {
    CHECK(with({pattern, 0.5}, 1) == with({pattern, 0.5}, 1));
    CHECK(with({pattern, 0.5}, 1) != with({pattern, 0.5}, 2));
    const std::vector<float> values = with({pattern, 0.5});
    CHECK_FALSE(std::equal(values.begin(), values.begin() + kImage, values.begin() + kImage));  // images differ
  }
}

TEST_CASE("synthetic zeros: channels are dead as their pattern says") {
  // Half of the zeros: 0.4 of the channels of each image.
  CHECK(dead_channels(with({ZeroPattern::channels, 0.8})) == kImages * 9);
  CHECK(dead_channels(with({ZeroPattern::random, 0.8})) == 0);
  // All of them, but for what makes no whole channel.
  CHECK(dead_channels(with({ZeroPattern::dead, 0.8})) == kImages * 19);
}

TEST_CASE("synthetic zeros: in blobs they lie together") {
  const ActivationZeros blobs = counted(with({ZeroPattern::blobs, 0.7})),
                        random = counted(with({ZeroPattern::random, 0.7}));
  CHECK(random.dead[1] == Approx(0.49).margin(0.03));
  CHECK(blobs.dead[1] > random.dead[1] + 0.1);
  CHECK(blobs.dead[3] > 2 * random.dead[3]);
}

TEST_CASE("synthetic zeros: pairs are imitated") {
  const ActivationZeros wanted{{0.6, 0.5, 0.4, 0.3}};
  std::vector<float> values(400 * kPlane, 1.0F);
  imitate_zeros(wanted, values, kPlane, 3);
  const ActivationZeros made = counted(values);
  CHECK(made.share() == Approx(0.6).margin(0.02));
  CHECK(made.dead[1] == Approx(0.5).margin(0.02));
  const ActivationZeros with_dead{{0.6, 0.5, 0.4, 0.3}, 0.25};
  std::vector<float> some_dead(400 * kPlane, 1.0F);
  imitate_zeros(with_dead, some_dead, kPlane, 3);
  const ActivationZeros counted_dead = counted(some_dead);
  CHECK(counted_dead.dead_channels == Approx(0.25).margin(0.05));
  CHECK(counted_dead.share() == Approx(0.6).margin(0.03));
  CHECK(counted_dead.dead[1] == Approx(0.5).margin(0.03));
  for (const double share : {0.0, 1.0}) {
    std::vector<float> all(kPlane, 1.0F);
    imitate_zeros({{share, share, share, share}}, all, kPlane, 1);
    CHECK(std::ranges::count(all, 0.0F) == static_cast<std::ptrdiff_t>(share * kPlane));
  }
}

TEST_CASE("synthetic zeros: what the command line says") {
  CHECK(parse_synthetic_zeros("0.8").pattern == ZeroPattern::random);
  CHECK(parse_synthetic_zeros("1").share == 1);
  const SyntheticZeros blobs = parse_synthetic_zeros("0.25:blobs");
  CHECK(blobs.pattern == ZeroPattern::blobs);
  CHECK(blobs.share == 0.25);
  for (const char* text : {"", "x", "-0.1", "1.5", "nan", "80%", "0.8 ", ":random"}) {
    CHECK_THAT(BURIN_THROWN(usage, parse_synthetic_zeros(text)).text, Contains("must be a share from 0 to 1"));
  }
  CHECK_THAT(BURIN_THROWN(usage, parse_synthetic_zeros("0.5:blob")).text,
             Contains("'blob' is none of random, channels, blobs"));
}
