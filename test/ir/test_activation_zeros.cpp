// Zeros of feature maps, counted in runs.
#include "ir/activation_zeros.h"

#include <cmath>
#include <vector>

#include "ir/error.h"
#include "test/catch.h"
#include "test/thrown.h"

using namespace burin;

TEST_CASE("activation zeros: runs follow each other in a plane, and the last may be shorter") {
  ZeroCounter counter;
  const std::vector<float> planes = {0, 0, 0, 1, 0, /* second plane */ 0, 2, 0, 0, -0.0F};
  counter.add(std::span<const float>(planes), 5);
  const ActivationZeros zeros = counter.zeros();
  CHECK(zeros.share() == 0.8);
  // Pairs: 00 01 0 and 02 00 0; fours: 0001 0 and 0200 0; eights: the planes.
  CHECK(zeros.dead[1] == Approx(4.0 / 6));
  CHECK(zeros.dead[2] == Approx(2.0 / 4));
  CHECK(zeros.dead[3] == 0);
  CHECK(zeros.dead_channels == 0);
}

TEST_CASE("activation zeros: dead channels, and patches between runs and channels") {
  ZeroCounter counter;
  counter.add(std::span<const float>(std::vector<float>(40, 0.0F)), 20);
  counter.add(std::span<const float>(std::vector<float>(40, 1.0F)), 20);
  CHECK(counter.zeros().dead_channels == 0.5);
  const ActivationZeros zeros{{0.8, 0.7, 0.6, 0.5}, 0.1};
  CHECK(zeros.dead_patches(2, 200) == 0.7);
  CHECK(zeros.dead_patches(8, 200) == 0.5);
  CHECK(zeros.dead_patches(40, 200) == Approx(0.3));  // halfway from 8 to 200 in the logarithm
  CHECK(zeros.dead_patches(200, 200) == 0.1);
  CHECK(zeros.dead_patches(4, 4) == 0.1);
  CHECK(zeros.with_share(0.8).dead_channels == Approx(0.1));
  CHECK(zeros.with_share(0.9).dead_channels > 0.1);
  CHECK(zeros.with_share(1).dead_channels == 1);
  CHECK(ActivationZeros{{0.5, 0.25, 0.1, 0}}.with_share(0.9).dead_channels == 0);
}

TEST_CASE("activation zeros: what is added later counts as much") {
  ZeroCounter counter;
  counter.add(std::span<const double>(std::vector<double>{0, 0}), 2);
  counter.add(std::span<const double>(std::vector<double>{1, 0, 3, 4}), 4);
  CHECK(counter.zeros().share() == Approx(0.5));
  CHECK(counter.zeros().dead[1] == Approx(1.0 / 3));
}

TEST_CASE("activation zeros: runs of other lengths lie between") {
  const ActivationZeros zeros{{0.8, 0.6, 0.4, 0.1}};
  CHECK(zeros.dead_runs(1) == 0.8);
  CHECK(zeros.dead_runs(4) == 0.4);
  CHECK(zeros.dead_runs(3) < 0.6);
  CHECK(zeros.dead_runs(3) > 0.4);
  CHECK(zeros.dead_runs(9) == 0.1);
}

TEST_CASE("activation zeros: of nothing, and of parts of planes") {
  CHECK_THROWS_AS(ZeroCounter().zeros(), Error);
  ZeroCounter counter;
  CHECK_THROWS_AS(counter.add(std::span<const float>(std::vector<float>{1, 2, 3}), 2), Error);
}

TEST_CASE("activation zeros: another share lies together as this one does") {
  const ActivationZeros zeros{{0.5, 0.4, 0.3, 0}};
  const ActivationZeros same = zeros.with_share(0.5);
  for (std::size_t i = 0; i < 3; ++i) CHECK(same.dead[i] == Approx(zeros.dead[i]));
  CHECK(same.dead[3] == Approx(std::pow(0.5, 8)));  // none were seen: as if values were zero by themselves
  CHECK(zeros.with_share(0.9).dead[1] > 0.81);
  CHECK(zeros.with_share(0).dead[2] == 0);
  CHECK(zeros.with_share(1).dead[2] == 1);
  CHECK(ActivationZeros{}.with_share(0.5).dead[1] == 0.25);
}
