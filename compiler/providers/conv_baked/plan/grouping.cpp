#include "compiler/providers/conv_baked/plan/grouping.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <queue>
#include <tuple>
#include <utility>

#include "compiler/providers/conv_baked/plan/exchange.h"
#include "ir/error.h"
#include "ir/limits.h"
#include "ir/saturate.h"

namespace burin {
namespace {

// A channel costs its copies even when few nonzeros read it.
constexpr std::int64_t kChannelWeight = 4;
// Up to so many channels in a row that the group does not read are copied nevertheless: that keeps a stage's channels
// consecutive.
constexpr int kMostDeadChannels = 3;
// A deal's search for loads in common takes at most about 0.1 s. Ten times as much gains 3 % for 1024 output channels,
// else less than 1 %.
constexpr std::int64_t kExchangeEffort = 30'000'000;
// How much heavier the heaviest group may be when it packs consecutive convolution groups.
constexpr double kConsecutiveLoss = 1.1;

// How many columns (or channels) are read by n output channels, for every n > 0.
using Histogram = std::map<int, std::int64_t>;

Histogram histogram(const std::vector<int>& counts) {
  Histogram result;
  for (const int count : counts) {
    if (count > 0) ++result[count];
  }
  return result;
}

// How many output channels read each input channel.
std::vector<int> readers_of_channels(const SparsePattern& pattern) {
  std::vector<int> readers(static_cast<std::size_t>(pattern.in_channels), 0);
  std::vector<int> last_channel(static_cast<std::size_t>(pattern.out_channels), -1);
  for (const Tap& tap : pattern.taps) {  // sorted by input channel
    if (last_channel[tap.k] == tap.c) continue;
    last_channel[tap.k] = tap.c;
    ++readers[tap.c];
  }
  return readers;
}

// Expected number of `histogram`'s entries read by one of `drawn` of `all` output channels.
double expected_live(const Histogram& histogram, int drawn, int all) {
  double live = 0;
  for (const auto& [readers, count] : histogram) {
    double none = 1;  // probability that all readers are other channels
    for (int i = 0; i < drawn && none > 0; ++i) {
      none *= std::max(0.0, static_cast<double>(all - readers - i) / static_cast<double>(all - i));
    }
    live += static_cast<double>(count) * (1 - none);
  }
  return live;
}

// Deals items to bins of limited capacity, heaviest item first, always to the lightest bin.
std::vector<std::vector<int>> deal(const std::vector<std::int64_t>& weights, int bins, int capacity) {
  std::vector<int> order(weights.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return weights[a] > weights[b]; });

  // Equal loads go to the bin with fewer items, so that none stays empty.
  using Key = std::tuple<std::int64_t, int, int>;  // load, items, bin
  std::priority_queue<Key, std::vector<Key>, std::greater<>> lightest;
  for (int bin = 0; bin < bins; ++bin) lightest.emplace(0, 0, bin);
  std::vector<std::vector<int>> dealt(bins);
  for (const int item : order) {
    const auto [load, items, bin] = lightest.top();
    lightest.pop();
    dealt[bin].push_back(item);
    if (items + 1 < capacity) lightest.emplace(load + weights[item], items + 1, bin);
  }
  for (std::vector<int>& items : dealt) std::sort(items.begin(), items.end());
  return dealt;
}

// ---- a row of pieces is cut into ranges of nearly the same weight
struct Piece {
  std::int64_t weight = 0;
  int items = 1;
  // What lies between this piece and the one before it: part of a range that holds both, else of none.
  std::int64_t gap_weight = 0;
  int gap_items = 0;
};

class RangeCutter {
 public:
  RangeCutter(const std::vector<Piece>& pieces, std::int64_t capacity)
      : count_(pieces.size()), capacity_(capacity), weight_(count_ + 1), items_(count_ + 1), gap_(count_ + 1) {
    for (std::size_t i = 0; i < count_; ++i) {
      const Piece& piece = pieces[i];
      weight_[i + 1] = weight_[i] + piece.gap_weight + piece.weight;
      items_[i + 1] = items_[i] + piece.gap_items + piece.items;
      gap_[i] = {piece.gap_weight, piece.gap_items};
      heaviest_ = std::max(heaviest_, piece.weight);
    }
  }

  std::vector<std::size_t> cut(int ranges) {
    std::int64_t low = heaviest_, high = weight_[count_];
    while (low < high) {
      const std::int64_t middle = low + (high - low) / 2;
      if (ranges_needed(middle) <= ranges) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    BURIN_CHECK(ranges_needed(low) <= ranges, "{} pieces do not fit {} ranges of {} items", count_, ranges, capacity_);
    return even_ends(low, ranges);
  }

 private:
  struct Gap {
    std::int64_t weight = 0, items = 0;
  };

  std::int64_t weight(std::size_t first, std::size_t last) const {
    return first == last ? 0 : weight_[last] - weight_[first] - gap_[first].weight;
  }
  std::int64_t items(std::size_t first, std::size_t last) const {
    return first == last ? 0 : items_[last] - items_[first] - gap_[first].items;
  }

  // Sets needed_[i], the ranges that the pieces from i on need when none is heavier than `most`, and reach_[i], the end
  // of the longest range that begins at i.
  int ranges_needed(std::int64_t most) {
    needed_.assign(count_ + 1, 0);
    reach_.assign(count_ + 1, count_);
    std::size_t last = count_;
    for (std::size_t first = count_; first-- > 0;) {
      while (last > first + 1 && (weight(first, last) > most || items(first, last) > capacity_)) --last;
      if (weight(first, last) > most || items(first, last) > capacity_) return kNever;
      reach_[first] = last;
      needed_[first] = needed_[last] + 1;
    }
    return needed_[0];
  }

  // The reach of every piece is known. Each range takes its part of what is left, as far as the others can do the
  // rest.
  std::vector<std::size_t> even_ends(std::int64_t most, int ranges) {
    ranges_needed(most);
    std::vector<std::size_t> ends;
    std::size_t first = 0;
    for (int left = ranges; left > 0; --left) {
      const std::size_t pieces = count_ - first, others = static_cast<std::size_t>(left) - 1;
      std::size_t longest = reach_[first];
      if (pieces > others) longest = std::min(longest, count_ - others);
      std::size_t end = std::min(first + 1, count_);
      const auto must_grow = [&] { return needed_[end] > left - 1; };
      // The range grows while the larger one is at least as close to its part.
      const auto is_light = [&] {
        return (weight(first, end) + weight(first, end + 1)) * left <= 2 * weight(first, count_);
      };
      while (end < longest && (must_grow() || is_light())) ++end;
      ends.push_back(end);
      first = end;
    }
    return ends;
  }

  static constexpr int kNever = 1 << 30;
  std::size_t count_;
  std::int64_t capacity_;
  std::vector<std::int64_t> weight_, items_;  // of all pieces before, with every gap
  std::vector<Gap> gap_;                      // before each piece
  std::int64_t heaviest_ = 0;                 // piece
  std::vector<int> needed_;
  std::vector<std::size_t> reach_;
};

// The ends of `ranges` consecutive ranges, the last end is pieces.size(). Each holds at most `capacity` items, and the
// heaviest is as light as that allows; the others are then nearly even, and none is empty where there are as many
// pieces. The capacity must suffice when ranges are filled one after the other.
std::vector<std::size_t> cut_ranges(const std::vector<Piece>& pieces, int ranges, std::int64_t capacity) {
  return RangeCutter(pieces, capacity).cut(ranges);
}

// ----
// Channels that are read together: those of one aligned block, at least one of which the group reads.
struct Block {
  int first = 0, last = 0;  // channels first to last - 1
  std::int64_t weight = 0;
};

std::vector<Block> blocks_of(const std::vector<ChannelWork>& work, int in_channels, int align) {
  std::vector<Block> blocks;
  for (const ChannelWork& channel : work) {
    const int first = channel.channel / align * align;
    if (blocks.empty() || blocks.back().first != first) {
      const int last = std::min(first + align, in_channels);
      blocks.push_back({first, last, kChannelWeight * (last - first)});
    }
    blocks.back().weight += channel.multiply_adds + kLoadWeight * channel.loads;
  }
  return blocks;
}

// How many channels that nobody reads are copied between two blocks of the same split.
int filled_gap(const Block& before, const Block& after, int align) {
  const int gap = after.first - before.last;
  return align > 1 || gap <= kMostDeadChannels ? gap : 0;
}

// The convolution's groups dealt to plan groups: consecutive ones where that balances about as well, so that a group's
// input channels are consecutive too.
std::vector<std::vector<int>> deal_convolution_groups(const std::vector<std::int64_t>& weights, int groups,
                                                      int packed) {
  std::vector<std::vector<int>> dealt = deal(weights, groups, packed);
  std::vector<Piece> pieces;
  for (const std::int64_t weight : weights) pieces.push_back({weight});
  std::vector<std::vector<int>> consecutive;
  int next = 0;
  for (const std::size_t end : cut_ranges(pieces, groups, packed)) {
    consecutive.emplace_back();
    while (next < static_cast<int>(end)) consecutive.back().push_back(next++);
  }
  const auto heaviest = [&](const std::vector<std::vector<int>>& bins) {
    std::int64_t most = 0;
    for (const std::vector<int>& bin : bins) {
      std::int64_t load = 0;
      for (const int item : bin) load += weights[item];
      most = std::max(most, load);
    }
    return static_cast<double>(most);
  };
  return heaviest(consecutive) <= kConsecutiveLoss * heaviest(dealt) ? consecutive : dealt;
}

// Blocks of output channels dealt as if each were one channel.
std::vector<std::vector<int>> deal_blocks(const ConvShape& shape, const SparsePattern& pattern,
                                          const GroupOption& option, int together) {
  ConvShape folded_shape = shape;
  folded_shape.out_channels /= together;
  SparsePattern folded = pattern;
  folded.out_channels /= together;
  for (Tap& tap : folded.taps) tap.k /= together;
  const auto same = [](const Tap& a, const Tap& b) { return a.c == b.c && a.r == b.r && a.s == b.s && a.k == b.k; };
  folded.taps.erase(std::unique(folded.taps.begin(), folded.taps.end(), same), folded.taps.end());
  std::vector<int>& per_row = folded.statistics.per_row;
  per_row.assign(static_cast<std::size_t>(folded.out_channels), 0);
  for (std::size_t k = 0; k < pattern.statistics.per_row.size(); ++k) {
    per_row[k / together] += pattern.statistics.per_row[k];
  }
  GroupOption folded_option = option;
  folded_option.capacity = static_cast<int>(ceil_div(folded_shape.outputs_per_group(), option.parts));
  std::vector<std::vector<int>> groups;
  for (const std::vector<int>& blocks : deal_outputs(folded_shape, folded, folded_option)) {
    groups.emplace_back();
    for (const int block : blocks) {
      for (int i = 0; i < together; ++i) groups.back().push_back(block * together + i);
    }
  }
  return groups;
}

}  // namespace

std::vector<GroupOption> group_options(const ConvShape& shape, const SparsePattern& pattern) {
  const PatternStatistics& statistics = pattern.statistics;
  const Histogram columns = histogram(statistics.per_column), channels = histogram(readers_of_channels(pattern));
  const int outputs = shape.outputs_per_group();
  std::vector<GroupOption> options;
  const auto add = [&](int groups, int capacity, int parts, int packed) {
    GroupOption option{groups, capacity, parts, packed, {}};
    const double in_parts = static_cast<double>(parts) / groups;  // every convolution group is read by `parts` groups
    const int drawn = std::min(capacity, outputs);
    option.mean.multiply_adds = static_cast<double>(statistics.nonzeros) / groups;
    option.mean.loads = expected_live(columns, drawn, outputs) * in_parts;
    option.mean.channels = expected_live(channels, drawn, outputs) * in_parts;
    options.push_back(option);
  };
  for (int packed = std::min(shape.groups, kMaxGroupChannels / outputs); packed > 1; --packed) {
    const auto groups = static_cast<int>(ceil_div(shape.groups, packed));
    if (ceil_div(shape.groups, groups) != packed) continue;  // the same number of groups with fewer in each
    add(groups, packed * outputs, 1, packed);
  }
  for (int capacity = std::min(outputs, kMaxGroupChannels); capacity > 0; --capacity) {
    const auto parts = static_cast<int>(ceil_div(outputs, capacity));
    if (ceil_div(outputs, parts) != capacity) continue;
    if (std::int64_t{parts} * shape.groups > kMaxSlices) break;
    add(parts * shape.groups, capacity, parts, 1);
  }
  return options;
}

std::vector<std::vector<int>> deal_outputs(const ConvShape& shape, const SparsePattern& pattern,
                                           const GroupOption& option, int together) {
  if (together > 1 && option.packed == 1 && shape.outputs_per_group() % together == 0) {
    const std::int64_t blocks = shape.outputs_per_group() / together;
    if (ceil_div(blocks, option.parts) * together <= option.capacity && blocks >= option.parts) {
      return deal_blocks(shape, pattern, option, together);
    }
  }
  const std::vector<int>& per_row = pattern.statistics.per_row;
  const int outputs = shape.outputs_per_group();
  std::vector<std::vector<int>> groups;
  if (option.packed > 1) {
    std::vector<std::int64_t> weights(static_cast<std::size_t>(shape.groups), 0);
    for (int k = 0; k < shape.out_channels; ++k) weights[k / outputs] += per_row[k];
    for (const std::vector<int>& members : deal_convolution_groups(weights, option.groups, option.packed)) {
      groups.emplace_back();
      for (const int member : members) {
        for (int i = 0; i < outputs; ++i) groups.back().push_back(member * outputs + i);
      }
    }
    return groups;
  }
  for (int first = 0; first < shape.out_channels; first += outputs) {
    const std::vector<std::int64_t> weights(per_row.begin() + first, per_row.begin() + first + outputs);
    for (std::vector<int>& members : deal(weights, option.parts, option.capacity)) {
      for (int& member : members) member += first;
      groups.push_back(std::move(members));
    }
  }
  return exchange_channels(pattern, std::move(groups), option.parts, option.capacity, kExchangeEffort);
}

std::vector<std::vector<int>> deal_channels(const std::vector<ChannelWork>& work, int in_channels, int splits,
                                            int align) {
  const std::vector<Block> blocks = blocks_of(work, in_channels, align);
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const int gap = i > 0 ? filled_gap(blocks[i - 1], blocks[i], align) : 0;
    pieces.push_back({blocks[i].weight, blocks[i].last - blocks[i].first, kChannelWeight * gap, gap});
  }
  std::vector<std::vector<int>> dealt;
  std::size_t first = 0;
  for (const std::size_t end : cut_ranges(pieces, splits, in_channels)) {
    std::vector<int>& split = dealt.emplace_back();
    for (std::size_t i = first; i < end; ++i) {
      const int gap = i > first ? pieces[i].gap_items : 0;
      for (int c = blocks[i].first - gap; c < blocks[i].last; ++c) split.push_back(c);
    }
    first = end;
  }
  return dealt;
}

}  // namespace burin
