#include "compiler/synthetic_zeros.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <vector>

#include "compiler/reference.h"
#include "ir/error.h"

namespace burin {
namespace {

constexpr int kBlobRadius = 2;           // places that share noise with their neighbours
constexpr float kChannelSpread = 1;      // of the channels' means, in deviations of the noise
constexpr double kOfDeadChannels = 0.5;  // of the zeros of ZeroPattern::channels

// Each image has seeds of its own, which no other uses for the same thing.
class Seeds {
 public:
  explicit Seeds(std::uint64_t first) : next_(first * 1'000'003) {}
  std::uint64_t take() { return ++next_; }

 private:
  std::uint64_t next_;
};

// Values of an image in the order in which they become zero: the smallest first.
using Scores = std::vector<float>;

Scores random_scores(std::int64_t values, Seeds& seeds) { return random_tensor(values, seeds.take()); }

Scores channel_scores(int channels, std::int64_t plane, double dead_share, Seeds& seeds) {
  Scores scores = random_scores(channels * plane, seeds);
  const std::vector<float> keys = random_tensor(channels, seeds.take());
  std::vector<std::size_t> order(keys.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t channel) { return keys[channel]; });
  const auto dead = static_cast<std::size_t>(dead_share * channels);
  for (std::size_t i = 0; i < dead; ++i) {
    const auto first = scores.begin() + static_cast<std::ptrdiff_t>(order[i]) * plane;
    std::for_each(first, first + plane, [](float& score) { score -= 2; });  // below all others
  }
  return scores;
}

// Noise that neighbours share, as a sum over a box, and a shift of each channel.
Scores blob_scores(int channels, int rows, int cols, Seeds& seeds) {
  constexpr int kSide = 2 * kBlobRadius + 1;
  const int wide_rows = rows + kSide - 1, wide_cols = cols + kSide - 1;
  const std::vector<float> noise = random_tensor(std::int64_t{channels} * wide_rows * wide_cols, seeds.take());
  const std::vector<float> shifts = random_tensor(channels, seeds.take());
  Scores scores;
  scores.reserve(static_cast<std::size_t>(channels) * rows * cols);
  for (int channel = 0; channel < channels; ++channel) {
    for (int row = 0; row < rows; ++row) {
      for (int col = 0; col < cols; ++col) {
        float sum = 0;
        for (int r = 0; r < kSide; ++r) {
          const std::size_t first = (static_cast<std::size_t>(channel) * wide_rows + row + r) * wide_cols + col;
          for (std::size_t s = 0; s < kSide; ++s) sum += noise[first + s];
        }
        // Both sums have the deviation of one draw then.
        scores.push_back(sum / kSide + kChannelSpread * shifts[static_cast<std::size_t>(channel)]);
      }
    }
  }
  return scores;
}

Scores scores_of(const SyntheticZeros& zeros, int channels, int rows, int cols, Seeds& seeds) {
  const std::int64_t plane = std::int64_t{rows} * cols;
  switch (zeros.pattern) {
    case ZeroPattern::random:
      return random_scores(channels * plane, seeds);
    case ZeroPattern::channels:
      return channel_scores(channels, plane, kOfDeadChannels * zeros.share, seeds);
    case ZeroPattern::blobs:
      return blob_scores(channels, rows, cols, seeds);
    case ZeroPattern::dead:
      return channel_scores(channels, plane, zeros.share, seeds);
  }
  fail(ErrorKind::internal, "a pattern of zeros without scores");
}

}  // namespace

SyntheticZeros parse_synthetic_zeros(const std::string& text) {
  SyntheticZeros zeros;
  const std::size_t colon = text.find(':');
  const char* const begin = text.data();
  const char* const end = begin + std::min(colon, text.size());
  const auto [stop, fault] = std::from_chars(begin, end, zeros.share);
  if (fault != std::errc() || stop != end || !(zeros.share >= 0 && zeros.share <= 1)) {
    fail(ErrorKind::usage, "--activation-sparsity '{}': what stands before a pattern must be a share from 0 to 1",
         text);
  }
  if (colon == std::string::npos) return zeros;
  const auto pattern = parse_enum<ZeroPattern>(text.substr(colon + 1));
  if (!pattern) {
    fail(ErrorKind::usage, "--activation-sparsity '{}': '{}' is none of {}", text, text.substr(colon + 1),
         known_names<ZeroPattern>());
  }
  zeros.pattern = *pattern;
  return zeros;
}

void set_zeros(const SyntheticZeros& zeros, std::span<float> images, int channels, int rows, int cols,
               std::uint64_t seed) {
  const std::int64_t plane = std::int64_t{rows} * cols;
  const auto values = static_cast<std::size_t>(channels * plane);
  BURIN_CHECK(values > 0 && images.size() % values == 0, "{} values are no images of {}", images.size(), values);
  Seeds seeds(seed);
  for (std::size_t first = 0; first < images.size(); first += values) {
    const Scores scores = scores_of(zeros, channels, rows, cols, seeds);
    std::vector<std::uint32_t> order(values);
    std::iota(order.begin(), order.end(), 0U);
    const auto count = static_cast<std::ptrdiff_t>(std::llround(zeros.share * static_cast<double>(values)));
    const auto before = [&](std::uint32_t a, std::uint32_t b) {
      return scores[a] < scores[b] || (scores[a] == scores[b] && a < b);
    };
    std::nth_element(order.begin(), order.begin() + count, order.end(), before);
    std::for_each(order.begin(), order.begin() + count, [&](std::uint32_t place) { images[first + place] = 0; });
  }
}

ActivationZeros count_synthetic(const SyntheticZeros& zeros, int channels, int rows, int cols) {
  constexpr int kImages = 2;
  constexpr std::uint64_t kSeed = 1;
  const std::int64_t plane = std::int64_t{rows} * cols;
  std::vector<float> values(static_cast<std::size_t>(channels * plane * kImages), 1.0F);
  set_zeros(zeros, values, channels, rows, cols, kSeed);
  ZeroCounter counter;
  counter.add(std::span<const float>(values), plane);
  return counter.zeros();
}

void imitate_zeros(const ActivationZeros& zeros, std::span<float> planes, std::int64_t plane, std::uint64_t seed) {
  // Both are shares of the values in channels that are not dead.
  const double living = 1 - zeros.dead_channels;
  const auto of_living = [&](double all) { return living > 0 ? (all - zeros.dead_channels) / living : 1.0; };
  const double share = of_living(zeros.share()), pairs = of_living(zeros.dead[1]);
  // The chain of values in which each depends on the one before it alone.
  const double after_zero = share > 0 ? std::min(1.0, pairs / share) : 0;
  const double after_value = share < 1 ? std::clamp((share - pairs) / (1 - share), 0.0, 1.0) : 1;
  const std::vector<float> draws = random_tensor(static_cast<std::int64_t>(planes.size()), seed);
  const auto chance_of = [](float draw) { return (draw + 1) / 2; };  // draws are uniform in [-1, 1]
  const std::vector<float> channels = random_tensor(static_cast<std::int64_t>(planes.size()) / plane, seed + 1);
  bool was_zero = false;
  for (std::size_t i = 0; i < planes.size(); ++i) {
    const bool begins = static_cast<std::int64_t>(i) % plane == 0;
    if (chance_of(channels[i / static_cast<std::size_t>(plane)]) < zeros.dead_channels) {
      planes[i] = 0;
      continue;
    }
    const double chance = begins ? share : was_zero ? after_zero : after_value;
    was_zero = chance_of(draws[i]) < chance;
    if (was_zero) planes[i] = 0;
  }
}

}  // namespace burin
