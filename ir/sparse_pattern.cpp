#include "ir/sparse_pattern.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <tuple>

#include "ir/faults.h"
#include "ir/limits.h"
#include "ir/saturate.h"
#include "ir/text.h"

namespace burin {
namespace {

constexpr std::string_view kWhat = "sparse pattern";

auto order_of(const Tap& tap) { return std::tuple(tap.c, tap.r, tap.s, tap.k); }

bool same_column(const Tap& a, const Tap& b) { return a.c == b.c && a.r == b.r && a.s == b.s; }

std::size_t column_index(const SparsePattern& pattern, const Tap& tap) {
  return (static_cast<std::size_t>(tap.c) * pattern.kernel_h + tap.r) * pattern.kernel_w + tap.s;
}

// Convolution groups, which the pattern itself does not carry: the number of weights tells them.
int convolution_groups(const SparsePattern& pattern, std::int64_t weights) {
  const std::int64_t per_input = std::int64_t{pattern.out_channels} * pattern.kernel_h * pattern.kernel_w;
  const std::int64_t inputs_per_output = per_input > 0 ? weights / per_input : 0;
  if (inputs_per_output < 1 || inputs_per_output > pattern.in_channels) return 1;
  return static_cast<int>(pattern.in_channels / inputs_per_output);
}

// Columns that some output of a run of `size` consecutive outputs could read, summed over all runs.
std::int64_t readable_columns(const SparsePattern& pattern, int groups, int size) {
  const int outputs_per_group = std::max(1, pattern.out_channels / groups);
  const std::int64_t columns_per_group =
      std::int64_t{pattern.in_channels} / groups * pattern.kernel_h * pattern.kernel_w;
  std::int64_t columns = 0;
  for (int first = 0; first < pattern.out_channels; first += size) {
    const int last = std::min(first + size, pattern.out_channels) - 1;
    columns += (last / outputs_per_group - first / outputs_per_group + 1) * columns_per_group;
  }
  return columns;
}

// Needs taps in order and in range.
PatternStatistics compute_statistics(const SparsePattern& pattern, std::int64_t weights) {
  PatternStatistics statistics;
  statistics.nonzeros = static_cast<std::int64_t>(pattern.taps.size());
  statistics.weights = weights;
  statistics.sparsity =
      weights > 0 ? 1.0 - static_cast<double>(statistics.nonzeros) / static_cast<double>(weights) : 0.0;
  statistics.per_row.assign(pattern.out_channels, 0);
  statistics.per_channel.assign(pattern.in_channels, 0);
  statistics.per_column.assign(static_cast<std::size_t>(pattern.in_channels) * pattern.kernel_h * pattern.kernel_w, 0);

  std::array<std::int64_t, kColumnGroupSizes.size()> live{};
  const Tap* previous = nullptr;
  for (const Tap& tap : pattern.taps) {
    ++statistics.per_row[tap.k];
    ++statistics.per_channel[tap.c];
    ++statistics.per_column[column_index(pattern, tap)];
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
  const int groups = convolution_groups(pattern, weights);
  for (std::size_t i = 0; i < kColumnGroupSizes.size(); ++i) {
    const std::int64_t readable = readable_columns(pattern, groups, kColumnGroupSizes[i]);
    statistics.live_columns[i] = readable > 0 ? static_cast<double>(live[i]) / static_cast<double>(readable) : 0.0;
  }
  return statistics;
}

bool in_range(const SparsePattern& pattern, const Tap& tap) {
  return tap.c >= 0 && tap.c < pattern.in_channels && tap.k >= 0 && tap.k < pattern.out_channels && tap.r >= 0 &&
         tap.r < pattern.kernel_h && tap.s >= 0 && tap.s < pattern.kernel_w;
}

std::string tap_text(const Tap& tap) { return fmt::format("tap (c {}, r {}, s {}, k {})", tap.c, tap.r, tap.s, tap.k); }

// Faults that make it impossible to count anything; statistics are not looked at.
std::vector<std::string> verify_taps(const SparsePattern& pattern) {
  Faults faults;
  faults.require_range("in_channels", pattern.in_channels, 1, kMaxChannels);
  faults.require_range("out_channels", pattern.out_channels, 1, kMaxChannels);
  faults.require_range("kernel_h", pattern.kernel_h, 1, kMaxKernelExtent);
  faults.require_range("kernel_w", pattern.kernel_w, 1, kMaxKernelExtent);
  if (!faults.empty()) return faults.take();
  for (std::size_t i = 0; i < pattern.taps.size(); ++i) {
    const Tap& tap = pattern.taps[i];
    if (!in_range(pattern, tap)) {
      faults.add("{} is outside of {} input channels, a {}x{} filter and {} output channels", tap_text(tap),
                 pattern.in_channels, pattern.kernel_h, pattern.kernel_w, pattern.out_channels);
    }
    if (!std::isfinite(tap.value)) faults.add("{} has the value {}", tap_text(tap), tap.value);
    if (tap.value == 0) faults.add("{} is zero; only nonzeros are taps", tap_text(tap));
    if (i == 0) continue;
    const Tap& before = pattern.taps[i - 1];
    if (order_of(before) == order_of(tap)) faults.add("{} is there twice", tap_text(tap));
    if (order_of(before) > order_of(tap)) {
      faults.add("{} stands after {}; the order is (c, r, s, k)", tap_text(tap), tap_text(before));
    }
  }
  return faults.take();
}

// "c 12 r 0 s 1" -> a tap without k and value.
Tap parse_column_key(const KeyValueText& reader, const TextLine& line) {
  const std::vector<std::string_view> parts = words(line.key);
  if (parts.size() != 6 || parts[0] != "c" || parts[2] != "r" || parts[4] != "s") {
    reader.fail_at(line, "'{}' is not of the form 'c 12 r 0 s 1'", line.key);
  }
  Tap tap;
  tap.c = reader.integer32(line, parts[1]);
  tap.r = reader.integer32(line, parts[3]);
  tap.s = reader.integer32(line, parts[5]);
  return tap;
}

}  // namespace

SparsePattern analyse(const ConvLayer& layer) {
  const ConvShape& shape = layer.shape;
  SparsePattern pattern;
  pattern.in_channels = shape.in_channels;
  pattern.out_channels = shape.out_channels;
  pattern.kernel_h = shape.kernel_h;
  pattern.kernel_w = shape.kernel_w;

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
  pattern.statistics = compute_statistics(pattern, shape.weight_elements());
  return pattern;
}

std::vector<std::string> verify(const SparsePattern& pattern) {
  std::vector<std::string> faults = verify_taps(pattern);
  if (!faults.empty()) return faults;

  const PatternStatistics& given = pattern.statistics;
  const std::int64_t most =
      saturating_product({pattern.in_channels, pattern.out_channels, pattern.kernel_h, pattern.kernel_w});
  const auto nonzeros = static_cast<std::int64_t>(pattern.taps.size());
  if (given.weights < nonzeros || given.weights > most) {
    faults.push_back(fmt::format("weights is {}, it must lie between the {} taps and the {} weights of a dense layer",
                                 given.weights, nonzeros, most));
    return faults;
  }
  const PatternStatistics counted = compute_statistics(pattern, given.weights);
  const auto check = [&](std::string_view name, bool same) {
    if (!same) faults.push_back(fmt::format("statistics: {} does not match the taps", name));
  };
  check("nonzeros", given.nonzeros == counted.nonzeros);
  check("sparsity", given.sparsity == counted.sparsity);
  check("per_row", given.per_row == counted.per_row);
  check("per_channel", given.per_channel == counted.per_channel);
  check("per_column", given.per_column == counted.per_column);
  check("dead_outputs", given.dead_outputs == counted.dead_outputs);
  check("dead_inputs", given.dead_inputs == counted.dead_inputs);
  check("empty_columns", given.empty_columns == counted.empty_columns);
  check("live_columns", given.live_columns == counted.live_columns);
  return faults;
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
    fmt::format_to(out, " k{}={}", tap.k, tap.value);  // the shortest text that reads back as the same float
    previous = &tap;
  }
  if (previous != nullptr) fmt::format_to(out, "\n");
  return fmt::to_string(text);
}

SparsePattern parse_sparse_pattern(std::string_view text) {
  KeyValueText reader(text, std::string(kWhat));
  SparsePattern pattern;
  std::tie(pattern.in_channels, pattern.out_channels) = reader.from_to("channels");
  reader.read("kernel", std::tie(pattern.kernel_h, pattern.kernel_w));
  std::int64_t weights = 0;
  reader.read("weights", weights);

  for (const TextLine* line : reader.with_first_word("c")) {
    Tap tap = parse_column_key(reader, *line);
    for (std::string_view word : words(line->value)) {
      const std::size_t equals = word.find('=');
      if (word[0] != 'k' || equals == std::string_view::npos) {
        reader.fail_at(*line, "'{}' is not of the form 'k3=0.25'", word);
      }
      tap.k = reader.integer32(*line, word.substr(1, equals - 1));
      tap.value = reader.real32(*line, word.substr(equals + 1));
      if (!in_range(pattern, tap)) reader.fail_at(*line, "{} is outside of the layer", tap_text(tap));
      pattern.taps.push_back(tap);
    }
  }
  reader.finish();

  // A person who edits may add a column at the end.
  std::sort(pattern.taps.begin(), pattern.taps.end(),
            [](const Tap& a, const Tap& b) { return order_of(a) < order_of(b); });
  const std::vector<std::string> faults = verify_taps(pattern);
  if (!faults.empty()) fail(ErrorKind::bad_input, "{}: {}", kWhat, faults.front());
  pattern.statistics = compute_statistics(pattern, weights);
  return pattern;
}

}  // namespace burin
