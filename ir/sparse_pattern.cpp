#include "ir/sparse_pattern.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace burin {
namespace {

bool same_column(const Tap& a, const Tap& b) { return a.c == b.c && a.r == b.r && a.s == b.s; }

// Columns that some output of a run of `size` consecutive outputs could read, summed over all runs.
std::int64_t readable_columns(const ConvShape& shape, int size) {
  const std::int64_t columns_per_group = std::int64_t{shape.channels_per_group()} * shape.kernel_h * shape.kernel_w;
  std::int64_t columns = 0;
  for (int first = 0; first < shape.out_channels; first += size) {
    const int last = std::min(first + size, shape.out_channels) - 1;
    columns += (last / shape.outputs_per_group() - first / shape.outputs_per_group() + 1) * columns_per_group;
  }
  return columns;
}

PatternStatistics compute_statistics(const SparsePattern& pattern, const ConvShape& shape) {
  PatternStatistics statistics;
  statistics.nonzeros = static_cast<std::int64_t>(pattern.taps.size());
  statistics.weights = shape.weight_elements();
  statistics.sparsity = 1.0 - static_cast<double>(statistics.nonzeros) / static_cast<double>(statistics.weights);
  statistics.per_row.assign(pattern.out_channels, 0);
  statistics.per_channel.assign(pattern.in_channels, 0);
  statistics.per_column.assign(static_cast<std::size_t>(pattern.in_channels) * pattern.kernel_h * pattern.kernel_w, 0);

  std::array<std::int64_t, kColumnGroupSizes.size()> live{};
  const Tap* previous = nullptr;
  for (const Tap& tap : pattern.taps) {
    ++statistics.per_row[tap.k];
    ++statistics.per_channel[tap.c];
    ++statistics.per_column[(static_cast<std::size_t>(tap.c) * pattern.kernel_h + tap.r) * pattern.kernel_w + tap.s];
    const bool new_column = previous == nullptr || !same_column(*previous, tap);
    for (std::size_t i = 0; i < kColumnGroupSizes.size(); ++i) {
      if (new_column || previous->k / kColumnGroupSizes[i] != tap.k / kColumnGroupSizes[i]) ++live[i];
    }
    previous = &tap;
  }
  const auto count_zero = [](const std::vector<int>& counts) {
    return static_cast<int>(std::count(counts.begin(), counts.end(), 0));
  };
  statistics.dead_outputs = count_zero(statistics.per_row);
  statistics.dead_inputs = count_zero(statistics.per_channel);
  statistics.empty_columns = count_zero(statistics.per_column);
  for (std::size_t i = 0; i < kColumnGroupSizes.size(); ++i) {
    const std::int64_t readable = readable_columns(shape, kColumnGroupSizes[i]);
    statistics.live_columns[i] = static_cast<double>(live[i]) / static_cast<double>(readable);
  }
  return statistics;
}

}  // namespace

SparsePattern analyse(const ConvLayer& layer) {
  const ConvShape& shape = layer.shape;
  SparsePattern pattern{shape.in_channels, shape.out_channels, shape.kernel_h, shape.kernel_w, {}, {}};
  // Counting sort by column: both passes read the weights in the order in which they lie; k ascends within a column.
  const std::int64_t filter = std::int64_t{shape.kernel_h} * shape.kernel_w;
  const std::int64_t row = shape.channels_per_group() * filter;
  const auto for_each_nonzero = [&](auto&& visit) {
    std::size_t index = 0;
    for (int k = 0; k < shape.out_channels; ++k) {
      const std::int64_t first_column = shape.input_channel(k, 0) * filter;
      for (std::int64_t i = 0; i < row; ++i, ++index) {
        const float value = layer.weights[index];
        if (value != 0) visit(k, first_column + i, value);
      }
    }
  };
  std::vector<std::size_t> next(static_cast<std::size_t>(shape.in_channels * filter) + 1, 0);
  for_each_nonzero([&](int, std::int64_t column, float) { ++next[column + 1]; });
  for (std::size_t i = 1; i < next.size(); ++i) next[i] += next[i - 1];
  pattern.taps.resize(next.back());
  for_each_nonzero([&](int k, std::int64_t column, float value) {
    const auto position = static_cast<int>(column % filter);
    pattern.taps[next[column]++] = {static_cast<int>(column / filter), position / shape.kernel_w,
                                    position % shape.kernel_w, k, value};
  });
  pattern.statistics = compute_statistics(pattern, shape);
  return pattern;
}

std::string print(const SparsePattern& pattern) {
  const PatternStatistics& statistics = pattern.statistics;
  fmt::memory_buffer text;
  auto out = std::back_inserter(text);
  fmt::format_to(out, "# {} nonzeros, {:.2f} % zero\n", statistics.nonzeros, 100 * statistics.sparsity);
  fmt::format_to(out, "# dead outputs {}, dead inputs {}, empty columns {} of {}\n", statistics.dead_outputs,
                 statistics.dead_inputs, statistics.empty_columns, statistics.per_column.size());
  for (std::size_t i = 0; i < kColumnGroupSizes.size(); ++i) {
    fmt::format_to(out, "# live columns in groups of {} outputs: {:.1f} %\n", kColumnGroupSizes[i],
                   100 * statistics.live_columns[i]);
  }
  fmt::format_to(out, "channels: {} -> {}\n", pattern.in_channels, pattern.out_channels);
  fmt::format_to(out, "kernel: {}x{}\n", pattern.kernel_h, pattern.kernel_w);
  fmt::format_to(out, "weights: {}\n", statistics.weights);
  const Tap* previous = nullptr;
  for (const Tap& tap : pattern.taps) {
    if (previous == nullptr || !same_column(*previous, tap)) {
      fmt::format_to(out, "{}c {} r {} s {}:", previous == nullptr ? "" : "\n", tap.c, tap.r, tap.s);
    }
    fmt::format_to(out, " k{}={}", tap.k, tap.value);  // the shortest text that is this float and no other
    previous = &tap;
  }
  if (previous != nullptr) fmt::format_to(out, "\n");
  return fmt::to_string(text);
}

}  // namespace burin
