// Two hundred random layers out of the whole convolution space, each with the planner's plan and with one drawn at
// random. A failure prints what makes the same case again.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "test/codegen/hand_plan.h"
#include "test/codegen/host_check.h"

using namespace burin;
using namespace burin_test;

namespace {

constexpr std::uint64_t kSeed = 20'260'000;
constexpr int kLayersPerCase = 20;
constexpr std::int64_t kMostWork = 3'000'000;  // multiply-adds and copies of a run: the host checks each access

struct RandomCase {
  ConvLayer layer;
  int planned_batch = 1, batch = 1;
  std::string arch;
  HandPlan hand;
  std::string description;
};

int extent_for(Random& random, int kernel, int dilation, int pads, int most) {
  const int least = std::max(1, (kernel - 1) * dilation + 1 - pads);
  return least + random.integer(0, std::max(0, most - least));
}

ConvShape draw_shape(Random& random) {
  ConvShape shape;
  if (random.chance(0.2)) {  // depthwise, with one or two outputs per input
    shape.groups = random.integer(2, 32);
    shape.in_channels = shape.groups;
    shape.out_channels = shape.groups * random.integer(1, 2);
  } else {
    shape.groups = random.chance(0.25) ? random.integer(2, 5) : 1;
    shape.in_channels = shape.groups * random.integer(1, shape.groups > 1 ? 10 : 40);
    shape.out_channels = shape.groups * random.integer(1, shape.groups > 1 ? 10 : 70);
  }
  const int most_kernel = random.chance(0.15) ? 11 : random.chance(0.5) ? 3 : 5;
  shape.kernel_h = random.integer(1, most_kernel);
  shape.kernel_w = random.chance(0.6) ? shape.kernel_h : random.integer(1, most_kernel);
  shape.stride_h = random.chance(0.5) ? 1 : random.integer(1, 4);
  shape.stride_w = random.chance(0.7) ? shape.stride_h : random.integer(1, 4);
  shape.dilation_h = random.chance(0.7) ? 1 : random.integer(2, 4);
  shape.dilation_w = random.chance(0.7) ? shape.dilation_h : random.integer(1, 4);
  const int most_pad = random.chance(0.3) ? 0 : random.chance(0.2) ? 9 : 3;
  shape.pad = {random.integer(0, most_pad), random.integer(0, most_pad), random.integer(0, most_pad),
               random.integer(0, most_pad)};
  shape.in_h = extent_for(random, shape.kernel_h, shape.dilation_h, shape.pad.top + shape.pad.bottom, 24);
  shape.in_w = extent_for(random, shape.kernel_w, shape.dilation_w, shape.pad.left + shape.pad.right, 30);
  shape.epilogue.bias = random.chance(0.5);
  shape.epilogue.residual = random.chance(0.3);
  shape.epilogue.activation = static_cast<Activation>(random.integer(0, 5));
  shape.epilogue.leaky_slope = static_cast<float>(2 * random.real() - 0.5);
  return shape;
}

std::int64_t work_of(const ConvShape& shape, double density) {
  const double taps = static_cast<double>(shape.weight_elements()) * density * shape.out_h() * shape.out_w();
  return static_cast<std::int64_t>(taps) + shape.input_elements() * 4 + shape.output_elements() * 4;
}

RandomCase draw_case(std::uint64_t seed) {
  Random random(seed);
  RandomCase drawn;
  ConvShape shape;
  double density = 0;
  do {
    shape = draw_shape(random);
    constexpr double kDensities[] = {0, 0.02, 0.1, 0.3, 0.7, 1};
    density = kDensities[random.integer(0, 5)];
    drawn.batch = random.integer(1, 5);
  } while (work_of(shape, density) * drawn.batch > kMostWork);
  drawn.layer = make_layer(fmt::format("random_{}", seed), shape, density, seed);
  drawn.planned_batch = random.chance(0.6) ? drawn.batch : random.chance(0.5) ? 1 : 32;
  drawn.arch = random.chance(0.25) ? "sm_75" : "sm_90";
  drawn.hand = random_hand_plan(drawn.layer, random);
  drawn.description = fmt::format(
      "seed {}: make_layer(\"{}\", parse_conv_shape(R\"({})\"), {}, {}), planned for batch {} on {}, run with {}", seed,
      drawn.layer.name, print(shape), density, seed, drawn.planned_batch, drawn.arch, drawn.batch);
  return drawn;
}

void check_layers(int part) {
  for (int i = 0; i < kLayersPerCase; ++i) {
    const std::uint64_t seed = kSeed + static_cast<std::uint64_t>(part * kLayersPerCase + i);
    const RandomCase drawn = draw_case(seed);
    INFO(drawn.description);
    REQUIRE(verify(drawn.layer).empty());
    CHECK(check_planned_on_host(drawn.layer, drawn.planned_batch, {drawn.batch}, drawn.arch, seed) == "");
    CHECK(check_on_host(drawn.layer, plan_by_hand(drawn.layer, drawn.hand), {drawn.batch}, seed) == "");
  }
}

}  // namespace

TEST_CASE("random layers 0 to 19") { check_layers(0); }
TEST_CASE("random layers 20 to 39") { check_layers(1); }
TEST_CASE("random layers 40 to 59") { check_layers(2); }
TEST_CASE("random layers 60 to 79") { check_layers(3); }
TEST_CASE("random layers 80 to 99") { check_layers(4); }
TEST_CASE("random layers 100 to 119") { check_layers(5); }
TEST_CASE("random layers 120 to 139") { check_layers(6); }
TEST_CASE("random layers 140 to 159") { check_layers(7); }
TEST_CASE("random layers 160 to 179") { check_layers(8); }
TEST_CASE("random layers 180 to 199") { check_layers(9); }

TEST_CASE("random layers reach every part of the space") {
  int depthwise = 0, grouped = 0, dilated = 0, strided = 0, asymmetric = 0, residual = 0, large = 0, old_arch = 0,
      direct = 0;
  std::array<int, 6> activations{};
  for (int i = 0; i < 10 * kLayersPerCase; ++i) {
    const RandomCase drawn = draw_case(kSeed + static_cast<std::uint64_t>(i));
    const ConvShape& s = drawn.layer.shape;
    depthwise += s.groups > 1 && s.groups == s.in_channels;
    grouped += s.groups > 1 && s.groups < s.in_channels;
    dilated += s.dilation_h > 1 && s.kernel_h > 1;
    strided += s.stride_h > 1;
    asymmetric += s.pad.top != s.pad.bottom && s.pad.left != s.pad.right;
    residual += s.epilogue.residual;
    large += s.kernel_h > 5 || s.kernel_w > 5;
    direct += drawn.hand.direct;
    old_arch += drawn.arch == "sm_75";
    ++activations[static_cast<std::size_t>(s.epilogue.activation)];
  }
  for (const int count : {depthwise, grouped, dilated, strided, asymmetric, residual, large, old_arch, direct})
    CHECK(count >= 5);
  for (const int count : activations) CHECK(count >= 5);
}
