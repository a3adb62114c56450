#include <set>

#include "ir/sparse_pattern.h"
#include "test/catch.h"
#include "test/ir/random_layers.h"

using namespace burin;

namespace {

// Every statistic counted in the most direct way.
void check_against_brute_force(const ConvLayer& layer, const SparsePattern& pattern) {
  const ConvShape& shape = layer.shape;
  std::vector<Tap> expected;
  for (int c = 0; c < shape.in_channels; ++c) {
    for (int r = 0; r < shape.kernel_h; ++r) {
      for (int s = 0; s < shape.kernel_w; ++s) {
        for (int k = 0; k < shape.out_channels; ++k) {
          const int local = c - shape.input_channel(k, 0);
          if (local < 0 || local >= shape.channels_per_group() || layer.weight(k, local, r, s) == 0) continue;
          expected.push_back({c, r, s, k, layer.weight(k, local, r, s)});
        }
      }
    }
  }
  REQUIRE(pattern.taps == expected);

  const PatternStatistics& statistics = pattern.statistics;
  CHECK(statistics.nonzeros == static_cast<std::int64_t>(expected.size()));
  CHECK(statistics.weights == static_cast<std::int64_t>(layer.weights.size()));
  CHECK(statistics.sparsity ==
        Approx(1.0 - static_cast<double>(expected.size()) / static_cast<double>(layer.weights.size())));
  int dead_outputs = 0, dead_inputs = 0, empty_columns = 0;
  for (int k = 0; k < shape.out_channels; ++k) {
    const auto count = std::count_if(expected.begin(), expected.end(), [&](const Tap& tap) { return tap.k == k; });
    CHECK(statistics.per_row[k] == count);
    dead_outputs += count == 0;
  }
  std::size_t column = 0;
  for (int c = 0; c < shape.in_channels; ++c) {
    int of_channel = 0;
    for (int r = 0; r < shape.kernel_h; ++r) {
      for (int s = 0; s < shape.kernel_w; ++s, ++column) {
        const auto count = static_cast<int>(std::count_if(
            expected.begin(), expected.end(), [&](const Tap& tap) { return tap.c == c && tap.r == r && tap.s == s; }));
        CHECK(statistics.per_column[column] == count);
        empty_columns += count == 0;
        of_channel += count;
      }
    }
    CHECK(statistics.per_channel[c] == of_channel);
    dead_inputs += of_channel == 0;
  }
  CHECK(statistics.dead_outputs == dead_outputs);
  CHECK(statistics.dead_inputs == dead_inputs);
  CHECK(statistics.empty_columns == empty_columns);

  for (std::size_t i = 0; i < kColumnGroupSizes.size(); ++i) {
    std::int64_t live = 0, readable = 0;
    for (int first = 0; first < shape.out_channels; first += kColumnGroupSizes[i]) {
      std::set<std::tuple<int, int, int>> could_read, reads;
      for (int k = first; k < std::min(first + kColumnGroupSizes[i], shape.out_channels); ++k) {
        for (int c = 0; c < shape.channels_per_group(); ++c) {
          for (int r = 0; r < shape.kernel_h; ++r) {
            for (int s = 0; s < shape.kernel_w; ++s) {
              could_read.emplace(shape.input_channel(k, c), r, s);
              if (layer.weight(k, c, r, s) != 0) reads.emplace(shape.input_channel(k, c), r, s);
            }
          }
        }
      }
      live += static_cast<std::int64_t>(reads.size());
      readable += static_cast<std::int64_t>(could_read.size());
    }
    CHECK(statistics.live_columns[i] == Approx(static_cast<double>(live) / static_cast<double>(readable)));
  }
}

ConvLayer layer_of(double density, std::uint64_t seed = 3) {
  return burin_test::make_layer("layer", burin_test::small_shape(), density, seed);
}

}  // namespace

TEST_CASE("sparse_pattern: taps and statistics match brute force on random layers") {
  burin_test::Random random(21);
  for (int i = 0; i < 40; ++i) {
    const ConvShape shape = burin_test::random_shape(random);
    const double density = random.real() * random.real();
    INFO("seed 21, case " << i << ": " << describe(shape) << ", density " << density);
    const ConvLayer layer = burin_test::make_layer("layer", shape, density, 100 + i);
    const SparsePattern pattern = analyse(layer);
    check_against_brute_force(layer, pattern);
  }
}

TEST_CASE("sparse_pattern: all_zero") {
  const SparsePattern pattern = analyse(layer_of(0));
  CHECK(pattern.taps.empty());
  CHECK(pattern.statistics.sparsity == 1);
  CHECK(pattern.statistics.dead_outputs == 32);
  CHECK(pattern.statistics.dead_inputs == 16);
  CHECK(pattern.statistics.empty_columns == 16 * 9);
  CHECK(pattern.statistics.live_columns == std::array<double, 4>{});
}

TEST_CASE("sparse_pattern: full_dense") {
  const SparsePattern pattern = analyse(layer_of(1));
  CHECK(pattern.taps.size() == 32 * 16 * 9);
  CHECK(pattern.statistics.sparsity == 0);
  CHECK(pattern.statistics.live_columns == std::array<double, 4>{1, 1, 1, 1});
}

TEST_CASE("sparse_pattern: one_nonzero is one readable line") {
  ConvLayer layer = layer_of(0);
  layer.weights[(3 * 16 + 12) * 9 + 1] = 0.1875F;
  const std::string text = print(analyse(layer));
  CHECK_THAT(text, burin_test::EndsWith("weights: 4608\nc 12 r 0 s 1: k3=0.1875\n"));
}

TEST_CASE("sparse_pattern: minus zero counts as zero") {
  ConvLayer layer = layer_of(0);
  layer.weights = std::vector<float>(layer.weights.size(), -0.0F);
  layer.weights[0] = 0.5F;
  layer.weights[1] = -0.5F;
  layer.weights[2] = 0.75F;
  CHECK(analyse(layer).taps.size() == 3);
}
