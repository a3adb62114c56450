#include "compiler/providers/linear_sparse/sparse_rows.h"

#include <algorithm>
#include <array>
#include <bit>

#include "compiler/providers/template_provider.h"
#include "ir/error.h"
#include "ir/limits.h"
#include "ir/saturate.h"

namespace burin {
namespace {

constexpr int kSteps = 4;  // of a group
constexpr int kWordBits = 32;

struct Entry {
  float value = 0;
  std::uint32_t delta = 0;
};

struct Lane {
  std::uint32_t first = 0;  // the feature of the first entry
  std::vector<Entry> entries;
};
using Row = std::array<Lane, kWarpSize>;

// Gives each lane in turn as many nonzeros as it has steps for. False when they do not all find a place.
bool share_out(const std::vector<std::pair<std::uint32_t, float>>& nonzeros, std::size_t steps,
               std::uint32_t largest_delta, Row& row) {
  row = {};
  std::size_t lane = 0;
  std::uint32_t last = 0;
  for (const auto& [feature, value] : nonzeros) {
    std::uint32_t delta = feature - last;
    const std::size_t zeros = delta == 0 ? 0 : (delta - 1) / largest_delta;
    if (row[lane].entries.size() + zeros + 1 > steps) ++lane;
    if (lane == row.size()) return false;
    std::vector<Entry>& entries = row[lane].entries;
    if (entries.empty()) {
      row[lane].first = feature;
      delta = 0;
    }
    for (; delta > largest_delta; delta -= largest_delta) entries.push_back({0, largest_delta});
    entries.push_back({value, delta});
    last = feature;
  }
  return true;
}

Row shares_of(const Linear& op, std::size_t output, std::uint32_t largest_delta) {
  std::vector<std::pair<std::uint32_t, float>> nonzeros;
  const auto features = static_cast<std::size_t>(op.in_features);
  for (std::size_t c = 0; c < features; ++c) {
    const float value = op.weights[output * features + c];
    if (value != 0) nonzeros.emplace_back(static_cast<std::uint32_t>(c), value);
  }
  Row row;
  auto steps =
      static_cast<std::size_t>(round_up(ceil_div(static_cast<std::int64_t>(nonzeros.size()), kWarpSize), kSteps));
  while (!share_out(nonzeros, steps, largest_delta, row)) steps += kSteps;
  for (Lane& lane : row) lane.entries.resize(steps);
  return row;
}

void append_values(std::vector<std::uint32_t>& words, const Row& row, std::size_t group, ElementType storage) {
  if (storage == ElementType::f32) {
    for (const Lane& lane : row) {
      for (std::size_t i = 0; i < kSteps; ++i)
        words.push_back(std::bit_cast<std::uint32_t>(lane.entries[group + i].value));
    }
    return;
  }
  for (std::size_t i = 0; i < kSteps; i += 2) {
    for (const Lane& lane : row) {
      words.push_back(half_word(storage, lane.entries[group + i].value, lane.entries[group + i + 1].value));
    }
  }
}

void append(std::vector<std::uint32_t>& words, const Row& row, int delta_words, ElementType storage) {
  const int bits = delta_words * kWordBits / kSteps;
  for (const Lane& lane : row) words.push_back(lane.first);
  for (std::size_t group = 0; group < row[0].entries.size(); group += kSteps) {
    append_values(words, row, group, storage);
    const std::size_t deltas = words.size();
    words.resize(deltas + static_cast<std::size_t>(kWarpSize * delta_words));
    for (std::size_t lane = 0; lane < row.size(); ++lane) {
      for (int i = 0; i < kSteps; ++i) {
        const int bit = i * bits, word = bit / kWordBits;
        words[deltas + static_cast<std::size_t>(word * kWarpSize) + lane] |=
            row[lane].entries[group + static_cast<std::size_t>(i)].delta << bit % kWordBits;
      }
    }
  }
}

}  // namespace

std::vector<std::uint32_t> pack_sparse_rows(const Linear& op, int delta_words, ElementType storage) {
  const auto align = [](std::vector<std::uint32_t>& words) {
    words.resize(static_cast<std::size_t>(round_up(static_cast<std::int64_t>(words.size()), kVectorWords)));
  };
  const std::uint32_t largest_delta = (1U << delta_words * kWordBits / kSteps) - 1;
  const auto outputs = static_cast<std::size_t>(op.out_features);
  std::vector<std::uint32_t> words(outputs + 1);
  align(words);
  for (const float bias : op.bias) words.push_back(std::bit_cast<std::uint32_t>(bias));
  align(words);
  for (std::size_t k = 0; k < outputs; ++k) {
    words[k] = static_cast<std::uint32_t>(words.size());
    append(words, shares_of(op, k, largest_delta), delta_words, storage);
  }
  words[outputs] = static_cast<std::uint32_t>(words.size());
  return words;
}

}  // namespace burin
