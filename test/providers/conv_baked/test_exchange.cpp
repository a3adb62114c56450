#include "compiler/providers/conv_baked/plan/exchange.h"

#include <set>

#include "test/catch.h"
#include "test/ir/random_layers.h"

using namespace burin;

namespace {

using Groups = std::vector<std::vector<int>>;

constexpr std::int64_t kEnough = 10'000'000;

ConvShape shared_shape(int in, int out, int kernel = 1) {
  ConvShape shape;
  shape.in_channels = in;
  shape.out_channels = out;
  shape.kernel_h = shape.kernel_w = kernel;
  shape.in_h = shape.in_w = 14;
  return shape;
}

// Output channel k reads the input channels of rows[k].
SparsePattern pattern_of(const std::vector<std::vector<int>>& rows, int in_channels) {
  ConvLayer layer{"layer", shared_shape(in_channels, static_cast<int>(rows.size())), {}, {}};
  layer.weights.resize(rows.size() * in_channels);
  for (std::size_t k = 0; k < rows.size(); ++k) {
    for (const int c : rows[k]) layer.weights[k * in_channels + c] = 1;
  }
  return analyse(layer);
}

struct DealCost {
  std::int64_t heaviest = 0;  // group: multiply-adds + kLoadWeight x loads
  std::int64_t total = 0;     // of all groups
  auto operator<=>(const DealCost&) const = default;
};

// What the groups cost by definition, column by column.
DealCost deal_cost(const SparsePattern& pattern, const Groups& groups) {
  DealCost cost;
  for (const std::vector<int>& group : groups) {
    std::set<std::tuple<int, int, int>> columns;
    std::int64_t sum = 0;
    for (const Tap& tap : pattern.taps) {
      if (std::find(group.begin(), group.end(), tap.k) == group.end()) continue;
      sum += columns.emplace(tap.c, tap.r, tap.s).second ? 1 + kLoadWeight : 1;
    }
    cost.heaviest = std::max(cost.heaviest, sum);
    cost.total += sum;
  }
  return cost;
}

Groups round_robin(int channels, int groups) {
  Groups dealt(groups);
  for (int k = 0; k < channels; ++k) dealt[k % groups].push_back(k);
  return dealt;
}

}  // namespace

TEST_CASE("exchange: channels that read the same come together") {
  constexpr int kKinds = 6, kAlike = 8;
  std::vector<std::vector<int>> rows;
  for (int i = 0; i < kKinds * kAlike; ++i) {
    const int first = 10 * (i / kAlike);
    rows.push_back({first, first + 3, first + 7});
  }
  const SparsePattern pattern = pattern_of(rows, 10 * kKinds);
  Groups groups(kKinds);
  for (int k = 0; k < kKinds * kAlike; ++k) {
    const int kind = k / kAlike;
    groups[k % kAlike == 3 ? kind ^ 1 : kind].push_back(k);  // each kind has a stray with its neighbour
  }
  const Groups shared = exchange_channels(pattern, groups, kKinds, kAlike, kEnough);
  const std::int64_t each = kAlike * 3 + kLoadWeight * 3;
  CHECK((deal_cost(pattern, shared) == DealCost{each, kKinds * each}));
  for (const std::vector<int>& group : shared) {
    for (const int k : group) CHECK(k / kAlike == group.front() / kAlike);
  }
}

TEST_CASE("exchange: a channel moves where there is room") {
  const SparsePattern pattern = pattern_of({{0, 1}, {4, 5, 6, 7}, {4, 5, 6, 7}, {4, 5, 6, 7}, {0, 1}, {0, 1}}, 8);
  const Groups start = {{0, 1, 2, 5}, {3, 4}};
  CHECK(exchange_channels(pattern, start, 2, 4, kEnough) == Groups{{1, 2, 3}, {0, 4, 5}});
}

TEST_CASE("exchange: random patterns and groups") {
  burin_test::Random random(61);
  for (int i = 0; i < 150; ++i) {
    const ConvShape shape = shared_shape(random.integer(1, 20), random.integer(1, 40), random.integer(1, 3));
    const SparsePattern pattern =
        analyse(burin_test::make_layer("layer", shape, random.real() * random.real(), 6100 + i));
    const int outputs = shape.out_channels, count = random.integer(1, outputs);
    Groups groups = round_robin(outputs, count);
    for (int turn = 0; turn < outputs; ++turn) {  // any deal will do
      std::vector<int>& a = groups[random.integer(0, count - 1)];
      std::vector<int>& b = groups[random.integer(0, count - 1)];
      std::swap(a[random.integer(0, static_cast<int>(a.size()) - 1)],
                b[random.integer(0, static_cast<int>(b.size()) - 1)]);
    }
    for (std::vector<int>& group : groups) std::sort(group.begin(), group.end());
    const int capacity = (outputs + count - 1) / count + random.integer(0, 2);
    const std::int64_t effort = random.chance(0.3) ? random.integer(0, 20'000) : kEnough;
    INFO("seed 61, case " << i << ": " << describe(shape) << ", " << count << " groups, effort " << effort);

    const Groups shared = exchange_channels(pattern, groups, count, capacity, effort);
    CHECK(exchange_channels(pattern, groups, count, capacity, effort) == shared);
    const DealCost before = deal_cost(pattern, groups), after = deal_cost(pattern, shared);
    CHECK(after.heaviest <= before.heaviest);
    CHECK(after.total <= before.total);
    REQUIRE(shared.size() == groups.size());
    std::set<int> all;
    for (const std::vector<int>& group : shared) {
      CHECK(!group.empty());
      CHECK(static_cast<int>(group.size()) <= capacity);
      CHECK(std::is_sorted(group.begin(), group.end()));
      for (const int k : group) CHECK(all.insert(k).second);
    }
    CHECK(static_cast<int>(all.size()) == outputs);
  }
}

TEST_CASE("exchange: a pattern without order gains, too") {
  const SparsePattern pattern = analyse(burin_test::make_layer("layer", shared_shape(64, 128, 3), 0.09));
  const Groups plain = round_robin(128, 8);
  const DealCost before = deal_cost(pattern, plain);
  const DealCost after = deal_cost(pattern, exchange_channels(pattern, plain, 8, 16, kEnough));
  CHECK(static_cast<double>(after.heaviest) <= 0.97 * static_cast<double>(before.heaviest));
  CHECK(static_cast<double>(after.total) <= 0.98 * static_cast<double>(before.total));
}

TEST_CASE("exchange: channels stay in their family") {
  const SparsePattern pattern = analyse(burin_test::make_layer("layer", shared_shape(16, 60, 3), 0.1));
  Groups groups;
  for (int first = 0; first < 60; first += 20) {
    for (const std::vector<int>& group : round_robin(20, 4)) {
      groups.emplace_back();
      for (const int k : group) groups.back().push_back(first + k);
    }
  }
  const Groups shared = exchange_channels(pattern, groups, 4, 5, kEnough);
  CHECK(shared != groups);
  for (std::size_t g = 0; g < shared.size(); ++g) {
    for (const int k : shared[g]) CHECK(k / 20 == static_cast<int>(g) / 4);
  }
}

TEST_CASE("exchange: more groups than the effort suffices for are looked at in parts") {
  const SparsePattern pattern = analyse(burin_test::make_layer("layer", shared_shape(32, 512), 0.1));
  const Groups plain = round_robin(512, 128);
  constexpr std::int64_t kLittle = 100'000;  // all 128 at once would be set up only
  const Groups shared = exchange_channels(pattern, plain, 128, 4, kLittle);
  CHECK(deal_cost(pattern, shared) < deal_cost(pattern, plain));
}

TEST_CASE("exchange: nothing in common") {
  const SparsePattern empty = pattern_of({{}, {}, {}, {}}, 3);
  CHECK(exchange_channels(empty, round_robin(4, 2), 2, 2, kEnough) == round_robin(4, 2));
  CHECK(deal_cost(empty, round_robin(4, 2)) == DealCost{0, 0});
  const SparsePattern dense = pattern_of({{0, 1, 2}, {0, 1, 2}, {0, 1, 2}, {0, 1, 2}}, 3);
  CHECK(exchange_channels(dense, round_robin(4, 2), 2, 2, kEnough) == round_robin(4, 2));
  CHECK(exchange_channels(dense, {{0, 1, 2, 3}}, 1, 4, kEnough) == Groups{{0, 1, 2, 3}});
  const SparsePattern one = pattern_of({{0, 2}}, 3);
  CHECK(exchange_channels(one, {{0}}, 1, 1, kEnough) == Groups{{0}});
  CHECK(exchange_channels(one, {{0}}, 1, 1, 0) == Groups{{0}});
}
