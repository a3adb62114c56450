#include "compiler/plan/grouping.h"

#include <catch2/catch.hpp>
#include <numeric>
#include <set>

#include "ir/limits.h"
#include "test/ir/random_layers.h"

using namespace burin;

namespace {

ConvShape shape_of(int in, int out, int groups, int kernel) {
  ConvShape shape;
  shape.in_channels = in;
  shape.out_channels = out;
  shape.groups = groups;
  shape.kernel_h = shape.kernel_w = kernel;
  shape.in_h = shape.in_w = 14;
  return shape;
}

struct Totals {
  double multiply_adds = 0, loads = 0, channels = 0, most_multiply_adds = 0;
};

Totals totals_of(const std::vector<std::vector<ChannelWork>>& work) {
  Totals totals;
  for (const auto& group : work) {
    double multiply_adds = 0;
    for (const ChannelWork& channel : group) {
      multiply_adds += channel.multiply_adds;
      totals.loads += channel.loads;
    }
    totals.channels += static_cast<double>(group.size());
    totals.multiply_adds += multiply_adds;
    totals.most_multiply_adds = std::max(totals.most_multiply_adds, multiply_adds);
  }
  return totals;
}

}  // namespace

TEST_CASE("grouping: every option deals a permutation that keeps the convolution's groups together") {
  burin_test::Random random(51);
  for (int i = 0; i < 60; ++i) {
    const ConvShape shape = burin_test::random_shape(random);
    const ConvLayer layer = burin_test::make_layer("layer", shape, random.real(), 500 + i);
    const SparsePattern pattern = analyse(layer);
    INFO("seed 51, case " << i << ": " << describe(shape));
    std::set<int> counts;
    for (const GroupOption& option : group_options(shape, pattern)) {
      CHECK(counts.insert(option.groups).second);
      const auto groups = deal_outputs(shape, pattern, option);
      REQUIRE(static_cast<int>(groups.size()) == option.groups);
      std::vector<int> all;
      std::size_t fullest = 0;
      for (const std::vector<int>& group : groups) {
        CHECK(!group.empty());
        CHECK(std::is_sorted(group.begin(), group.end()));
        fullest = std::max(fullest, group.size());
        all.insert(all.end(), group.begin(), group.end());
        std::set<int> convolution_groups;
        for (const int k : group) convolution_groups.insert(k / shape.outputs_per_group());
        CHECK(static_cast<int>(convolution_groups.size()) <= option.packed);
      }
      CHECK(static_cast<int>(fullest) == option.capacity);
      CHECK(option.capacity <= kMaxGroupChannels);
      std::sort(all.begin(), all.end());
      std::vector<int> expected(shape.out_channels);
      std::iota(expected.begin(), expected.end(), 0);
      CHECK(all == expected);
    }
  }
}

TEST_CASE("grouping: expected means are close to exact counts on a random pattern") {
  const ConvShape shape = shape_of(64, 256, 1, 3);
  const SparsePattern pattern = analyse(burin_test::make_layer("layer", shape, 0.1));
  for (const GroupOption& option : group_options(shape, pattern)) {
    const auto groups = deal_outputs(shape, pattern, option);
    const Totals totals = totals_of(count_work(pattern, group_of_outputs(groups, 256), groups.size()));
    INFO(option.groups << " groups of " << option.capacity);
    CHECK(totals.multiply_adds == Approx(option.mean.multiply_adds * option.groups));
    CHECK(totals.loads == Approx(option.mean.loads * option.groups).epsilon(0.03));
    CHECK(totals.channels == Approx(option.mean.channels * option.groups).epsilon(0.03));
  }
}

TEST_CASE("grouping: unequal rows are balanced") {
  const ConvShape shape = shape_of(64, 128, 1, 3);
  ConvLayer layer = burin_test::make_layer("layer", shape, 0.3);
  burin_test::Random random(52);
  for (int k = 0; k < 128; ++k) {  // rows of 0 to 30 % density
    const double keep = random.real();
    for (int i = 0; i < 64 * 9; ++i) {
      if (!random.chance(keep)) layer.weights[k * 64 * 9 + i] = 0;
    }
  }
  const SparsePattern pattern = analyse(layer);
  for (const GroupOption& option : group_options(shape, pattern)) {
    if (option.capacity < 8) continue;
    const auto groups = deal_outputs(shape, pattern, option);
    const Totals totals = totals_of(count_work(pattern, group_of_outputs(groups, 128), groups.size()));
    INFO(option.groups << " groups of " << option.capacity);
    // A last group that is not full may hold less; the fullest is what a launch waits for.
    CHECK(totals.most_multiply_adds <= 1.1 * totals.multiply_adds * option.capacity / 128);
  }
}

TEST_CASE("grouping: depthwise groups read their own channels only") {
  const ConvShape shape = shape_of(96, 96, 96, 3);
  const SparsePattern pattern = analyse(burin_test::make_layer("layer", shape, 1));
  for (const GroupOption& option : group_options(shape, pattern)) {
    const auto groups = deal_outputs(shape, pattern, option);
    const auto work = count_work(pattern, group_of_outputs(groups, 96), groups.size());
    for (std::size_t g = 0; g < groups.size(); ++g) CHECK(work[g].size() == groups[g].size());
  }
}

TEST_CASE("grouping: channels are dealt once, balanced, without an extra stage") {
  burin_test::Random random(53);
  for (int i = 0; i < 100; ++i) {
    std::vector<ChannelWork> work;
    std::int64_t total = 0;
    for (int n = random.integer(0, 200); n > 0; --n) {
      work.push_back({static_cast<int>(work.size()) * 3, random.integer(1, 60), random.integer(1, 9)});
      total += work.back().multiply_adds + 2 * work.back().loads + 4;
    }
    const int splits = random.integer(1, 8), stage = random.integer(1, 16);
    INFO("seed 53, case " << i << ": " << work.size() << " channels, " << splits << " splits, stages of " << stage);
    const auto dealt = deal_channels(work, splits, stage);
    REQUIRE(static_cast<int>(dealt.size()) == splits);
    std::set<int> seen;
    const auto share = static_cast<int>((work.size() + splits - 1) / splits);
    for (const std::vector<int>& channels : dealt) {
      CHECK(std::is_sorted(channels.begin(), channels.end()));
      CHECK(static_cast<int>(channels.size()) <= std::max(1, (share + stage - 1) / stage * stage));
      std::int64_t load = 0;
      for (const int c : channels) {
        CHECK(seen.insert(c).second);
        load += work[c / 3].multiply_adds + 2 * work[c / 3].loads + 4;
      }
      if (work.size() > 100 && stage > 1) CHECK(load <= 1.15 * static_cast<double>(total) / splits + 82);
    }
    CHECK(seen.size() == work.size());
  }
}
