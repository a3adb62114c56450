#include "compiler/providers/conv_baked/plan/grouping.h"

#include <numeric>
#include <set>

#include "ir/limits.h"
#include "test/catch.h"
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

TEST_CASE("grouping: exact counts on a random pattern are the expected means or somewhat less") {
  const ConvShape shape = shape_of(64, 256, 1, 3);
  const SparsePattern pattern = analyse(burin_test::make_layer("layer", shape, 0.1));
  for (const GroupOption& option : group_options(shape, pattern)) {
    const auto groups = deal_outputs(shape, pattern, option);
    const Totals totals = totals_of(count_work(pattern, group_of_outputs(groups, 256), groups.size()));
    INFO(option.groups << " groups of " << option.capacity);
    CHECK(totals.multiply_adds == Approx(option.mean.multiply_adds * option.groups));
    CHECK(totals.loads <= 1.03 * option.mean.loads * option.groups);
    CHECK(totals.loads >= 0.85 * option.mean.loads * option.groups);
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

TEST_CASE("grouping: packed convolution groups are consecutive where that balances") {
  const ConvShape shape = shape_of(96, 96, 96, 3);
  ConvLayer layer = burin_test::make_layer("layer", shape, 1);
  const auto is_consecutive = [&](const GroupOption& option) {
    for (const std::vector<int>& group : deal_outputs(shape, analyse(layer), option)) {
      if (group.back() - group.front() + 1 != static_cast<int>(group.size())) return false;
    }
    return true;
  };
  const std::vector<GroupOption> options = group_options(shape, analyse(layer));
  for (const GroupOption& option : options) CHECK(is_consecutive(option));

  std::fill_n(layer.weights.begin(), 48 * 9, 0.0F);  // the first half is empty: it evens out the second
  const auto in_two = std::find_if(options.begin(), options.end(), [](const auto& o) { return o.groups == 2; });
  REQUIRE(in_two != options.end());
  CHECK(!is_consecutive(*in_two));
}

namespace {

std::int64_t weight_of(const std::vector<int>& channels, const std::vector<ChannelWork>& work) {
  std::int64_t weight = 0;
  for (const int c : channels) {
    weight += 4;
    for (const ChannelWork& channel : work) {
      if (channel.channel == c) weight += channel.multiply_adds + 2 * channel.loads;
    }
  }
  return weight;
}

std::int64_t heaviest_of(const std::vector<std::vector<int>>& splits, const std::vector<ChannelWork>& work) {
  std::int64_t most = 0;
  for (const std::vector<int>& channels : splits) most = std::max(most, weight_of(channels, work));
  return most;
}

// By trying every cut: the channels from work[first] on, in `splits` ranges.
std::int64_t least_heaviest(const std::vector<ChannelWork>& work, std::size_t first, int splits) {
  if (first == work.size()) return 0;
  if (splits == 0) return std::int64_t{1} << 40;
  std::int64_t best = std::int64_t{1} << 40, weight = 0;
  for (std::size_t end = first + 1; end <= work.size(); ++end) {
    const int gap = end > first + 1 ? work[end - 1].channel - work[end - 2].channel - 1 : 0;
    if (gap <= 3) weight += std::int64_t{4} * gap;
    weight += work[end - 1].multiply_adds + 2 * work[end - 1].loads + 4;
    best = std::min(best, std::max(weight, least_heaviest(work, end, splits - 1)));
  }
  return best;
}

}  // namespace

TEST_CASE("grouping: splits are ranges, the heaviest as light as can be") {
  burin_test::Random random(53);
  for (int i = 0; i < 200; ++i) {
    std::vector<ChannelWork> work;
    int channel = random.integer(0, 9);
    for (int n = random.integer(0, 10); n > 0; --n) {
      work.push_back({channel, random.integer(1, 60), random.integer(1, 9)});
      channel += random.chance(0.6) ? 1 : random.integer(2, 7);
    }
    const int splits = random.integer(1, 5), in_channels = channel + 1;
    INFO("seed 53, case " << i << ": " << work.size() << " channels, " << splits << " splits");
    const auto dealt = deal_channels(work, in_channels, splits);
    REQUIRE(static_cast<int>(dealt.size()) == splits);
    std::vector<int> read;
    std::set<int> missing;
    for (const ChannelWork& item : work) missing.insert(item.channel);
    for (const std::vector<int>& channels : dealt) {
      CHECK(channels.empty() == (&channels - dealt.data() >= static_cast<std::ptrdiff_t>(work.size())));
      if (channels.empty()) continue;
      CHECK(missing.contains(channels.front()));  // no range begins or ends with a dead channel
      CHECK(missing.contains(channels.back()));
      read.insert(read.end(), channels.begin(), channels.end());
      for (std::size_t at = 1; at < channels.size(); ++at) {
        const int step = channels[at] - channels[at - 1];
        CHECK((step == 1 || step > 4));
      }
    }
    CHECK(std::is_sorted(read.begin(), read.end()));
    CHECK(std::adjacent_find(read.begin(), read.end()) == read.end());
    for (const int c : read) missing.erase(c);
    CHECK(missing.empty());
    CHECK(heaviest_of(dealt, work) == least_heaviest(work, 0, splits));
  }
}

TEST_CASE("grouping: aligned splits leave nothing out") {
  burin_test::Random random(54);
  for (int i = 0; i < 200; ++i) {
    const int in_channels = random.integer(1, 90), splits = random.integer(1, 6), align = random.integer(2, 8);
    const double live = random.real();
    std::vector<ChannelWork> work;
    for (int c = 0; c < in_channels; ++c) {
      if (random.chance(live)) work.push_back({c, random.integer(1, 60), random.integer(1, 9)});
    }
    INFO("seed 54, case " << i << ": " << in_channels << " channels, " << splits << " splits, align " << align);
    std::set<int> missing;
    for (const ChannelWork& item : work) missing.insert(item.channel);
    const auto dealt = deal_channels(work, in_channels, splits, align);
    REQUIRE(static_cast<int>(dealt.size()) == splits);
    int last = 0;
    for (const std::vector<int>& channels : dealt) {
      if (channels.empty()) continue;
      CHECK(channels.front() >= last);
      CHECK(channels.front() % align == 0);
      CHECK(channels.back() - channels.front() + 1 == static_cast<int>(channels.size()));
      last = channels.back() + 1;
      CHECK((last % align == 0 || last == in_channels));
      for (const int c : channels) missing.erase(c);
    }
    CHECK(last <= in_channels);
    CHECK(missing.empty());
  }
}

TEST_CASE("grouping: splits of equal channels are equal") {
  std::vector<ChannelWork> work;
  for (int c = 0; c < 64; ++c) work.push_back({c, 10, 5});
  for (const std::vector<int>& channels : deal_channels(work, 64, 4)) CHECK(channels.size() == 16);
  for (const std::vector<int>& channels : deal_channels(work, 64, 4, 4)) CHECK(channels.size() == 16);
  // 64 are not a multiple of 5: as even as can be, not full ranges and a rest.
  for (const std::vector<int>& channels : deal_channels(work, 64, 5)) CHECK(channels.size() >= 12);
}

TEST_CASE("grouping: more splits than channels") {
  using Splits = std::vector<std::vector<int>>;
  CHECK(deal_channels({{5, 1, 1}, {6, 9, 2}}, 7, 4) == Splits{{5}, {6}, {}, {}});
  CHECK(deal_channels({{5, 1, 1}, {6, 9, 2}}, 7, 3, 4) == Splits{{4, 5, 6}, {}, {}});
  CHECK(deal_channels({}, 7, 2) == Splits{{}, {}});
}

TEST_CASE("grouping: dead channels between two that are read") {
  using Splits = std::vector<std::vector<int>>;
  CHECK(deal_channels({{1, 1, 1}, {5, 1, 1}}, 9, 1) == Splits{{1, 2, 3, 4, 5}});
  CHECK(deal_channels({{1, 1, 1}, {6, 1, 1}}, 9, 1) == Splits{{1, 6}});
  CHECK(deal_channels({{1, 1, 1}, {5, 1, 1}}, 9, 2) == Splits{{1}, {5}});
  CHECK(deal_channels({{1, 1, 1}, {13, 1, 1}}, 15, 1, 4) == Splits{{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14}});
}
