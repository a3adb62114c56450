#include "compiler/providers/conv_baked/plan/exchange.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

#include "ir/limits.h"
#include "ir/saturate.h"

namespace burin {
namespace {

// The search minimises the sum of cost^power over the groups: first mostly the total, in the end the heaviest.
constexpr std::array<int, 4> kPowers = {2, 8, 32, 128};
constexpr std::size_t kCandidates = 4;  // exchanges of a channel that are weighed exactly; 32 find nothing better
constexpr double kLeastGain = 1e-6;     // of two groups' part of the sum; less is not worth a turn, or is rounding

// Many short lists of integers in one block of memory.
class Lists {
 public:
  Lists() : starts_{0} {}
  void add(int value) { values_.push_back(value); }
  void end_list() { starts_.push_back(values_.size()); }
  std::size_t count() const { return starts_.size() - 1; }
  std::size_t total() const { return values_.size(); }
  std::span<const int> operator[](std::size_t list) const {
    return {values_.data() + starts_[list], starts_[list + 1] - starts_[list]};
  }

  // List v of the result names the lists that hold v, ascending.
  Lists inverse(std::size_t values) const {
    Lists result;
    result.starts_.assign(values + 1, 0);
    result.values_.resize(values_.size());
    for (const int value : values_) ++result.starts_[value + 1];
    for (std::size_t v = 0; v < values; ++v) result.starts_[v + 1] += result.starts_[v];
    std::vector<std::size_t> next(result.starts_.begin(), result.starts_.end() - 1);
    for (std::size_t list = 0; list < count(); ++list) {
      for (const int value : (*this)[list]) result.values_[next[value]++] = static_cast<int>(list);
    }
    return result;
  }

 private:
  std::vector<std::size_t> starts_;
  std::vector<int> values_;
};

struct DealCost {
  std::int64_t heaviest = 0;  // group: multiply-adds + kLoadWeight x loads
  std::int64_t total = 0;     // of all groups
  bool operator==(const DealCost&) const = default;
};

// Local search over the groups of one family. Channels and columns have numbers of their own here.
class FamilySearch {
 public:
  // `columns` lists those of each channel, all below `column_count`.
  FamilySearch(Lists columns, std::size_t column_count, std::vector<std::vector<int>> groups, int capacity)
      : columns_(std::move(columns)),
        readers_(columns_.inverse(column_count)),
        members_(std::move(groups)),
        capacity_(static_cast<std::size_t>(capacity)),
        channel_count_(columns_.count()),
        column_count_(column_count),
        group_of_(channel_count_),
        position_(channel_count_),
        counts_(members_.size() * column_count_, 0),
        fresh_(members_.size() * channel_count_, 0),
        sole_(channel_count_, 0),
        cost_(members_.size(), 0),
        rated_(members_.size()),
        in_channel_(column_count_, 0) {
    static_assert(kMaxGroupChannels <= 255, "readers of a column within a group are counted in bytes");
    for (std::size_t g = 0; g < members_.size(); ++g) {
      for (std::size_t i = 0; i < members_[g].size(); ++i) {
        const int k = members_[g][i];
        group_of_[k] = static_cast<int>(g);
        position_[k] = i;
        cost_[g] += size_of(k);
        for (const int column : columns_[k]) ++counts_[g * column_count_ + column];
      }
      for (std::size_t column = 0; column < column_count_; ++column) {
        if (counts_[g * column_count_ + column] > 0) {
          cost_[g] += kLoadWeight;
        } else {
          for (const int reader : readers_[column]) ++fresh_[g * channel_count_ + reader];
        }
      }
    }
    for (std::size_t k = 0; k < channel_count_; ++k) {
      const std::uint8_t* counts = counts_of(group_of_[k]);
      for (const int column : columns_[k]) sole_[k] += counts[column] == 1;
    }
    steps_ = setup_steps(columns_.total(), members_.size());
  }

  // What the constructor takes.
  static std::int64_t setup_steps(std::size_t nonzeros, std::size_t groups) {
    return saturating_product({static_cast<std::int64_t>(nonzeros), static_cast<std::int64_t>(groups)}) / 2;
  }

  // Nothing when the groups given are not to be bettered.
  std::optional<std::vector<std::vector<int>>> run(std::int64_t effort) {
    const DealCost before = cost();
    for (std::size_t phase = 0; phase < kPowers.size(); ++phase) {
      rate_all(kPowers[phase]);
      const std::int64_t until = steps_ + (effort - steps_) / static_cast<std::int64_t>(kPowers.size() - phase);
      std::size_t idle = 0;
      for (std::size_t k = 0; idle < channel_count_ && steps_ < until; k = k + 1 < channel_count_ ? k + 1 : 0) {
        idle = improve(static_cast<int>(k)) ? 0 : idle + 1;
      }
    }
    const DealCost after = cost();
    if (after.heaviest > before.heaviest || after.total > before.total || after == before) return std::nullopt;
    return std::move(members_);
  }

 private:
  DealCost cost() const {
    return {*std::max_element(cost_.begin(), cost_.end()),
            std::accumulate(cost_.begin(), cost_.end(), std::int64_t{0})};
  }

  // x goes to group `to`, y (or nobody) comes back.
  struct Candidate {
    double change = 0;  // of the sum of rated costs, at best
    int y = -1, to = -1;
  };

  std::int64_t size_of(int k) const { return static_cast<std::int64_t>(columns_[k].size()); }
  const std::uint8_t* counts_of(int group) const { return counts_.data() + group * column_count_; }
  const int* fresh_of(int group) const { return fresh_.data() + group * channel_count_; }

  double rate(std::int64_t cost) const {
    double factor = static_cast<double>(cost) * scale_, result = 1;
    for (int bits = power_; bits > 0; bits >>= 1) {
      if (bits & 1) result *= factor;
      factor *= factor;
    }
    return result;
  }

  void rate_all(int power) {
    power_ = power;
    scale_ = 1 / static_cast<double>(std::max<std::int64_t>(1, *std::max_element(cost_.begin(), cost_.end())));
    for (std::size_t g = 0; g < members_.size(); ++g) rated_[g] = rate(cost_[g]);
  }

  // How the sum changes when x of group `from` and y of group `to` change places. Columns that only x read in its group
  // and y reads too stay loaded: `kept_from` of them, and `kept_to` the other way round.
  double change(int x, int from, int y, int to, int kept_from, int kept_to) const {
    const std::int64_t x_size = size_of(x), y_size = size_of(y);
    const std::int64_t from_cost =
        cost_[from] - x_size + y_size + kLoadWeight * (fresh_of(from)[y] + kept_from - sole_[x]);
    const std::int64_t to_cost = cost_[to] - y_size + x_size + kLoadWeight * (fresh_of(to)[x] + kept_to - sole_[y]);
    return rate(from_cost) + rate(to_cost) - rated_[from] - rated_[to];
  }

  double change_of_move(int x, int from, int to) const {
    const std::int64_t size = size_of(x);
    return rate(cost_[from] - size - kLoadWeight * sole_[x]) + rate(cost_[to] + size + kLoadWeight * fresh_of(to)[x]) -
           rated_[from] - rated_[to];
  }

  // Takes the best exchange of x, if there is one.
  bool improve(int x) {
    const int from = group_of_[x];
    best_.clear();
    for (int to = 0; to < static_cast<int>(members_.size()); ++to) {
      if (to == from) continue;
      for (const int y : members_[to]) consider(from, {change(x, from, y, to, 0, 0), y, to});
      steps_ += 4 * static_cast<std::int64_t>(members_[to].size());
      if (members_[to].size() < capacity_ && members_[from].size() > 1) {
        consider(from, {change_of_move(x, from, to), -1, to});
      }
    }
    if (best_.empty()) return false;

    for (const int column : columns_[x]) in_channel_[column] = counts_of(from)[column] == 1 ? 2 : 1;
    Candidate best;
    for (const Candidate& candidate : best_) {
      if (candidate.change >= best.change) break;  // so are all that follow
      const double exact = candidate.y < 0 ? candidate.change : exact_change(x, from, candidate);
      if (exact < best.change && is_gain(exact, from, candidate.to)) best = {exact, candidate.y, candidate.to};
    }
    for (const int column : columns_[x]) in_channel_[column] = 0;
    if (best.to < 0) return false;
    exchange(x, from, best.y, best.to);
    return true;
  }

  bool is_gain(double change, int from, int to) const { return change < -kLeastGain * (rated_[from] + rated_[to]); }

  // Keeps the kCandidates best, best first; of equals those that came first.
  void consider(int from, const Candidate& candidate) {
    if (!is_gain(candidate.change, from, candidate.to)) return;
    if (best_.size() == kCandidates) {
      if (candidate.change >= best_.back().change) return;
      best_.pop_back();
    }
    auto at = best_.end();
    while (at != best_.begin() && candidate.change < (at - 1)->change) --at;
    best_.insert(at, candidate);
  }

  double exact_change(int x, int from, const Candidate& candidate) {
    int kept_from = 0, kept_to = 0;
    const std::uint8_t* counts = counts_of(candidate.to);
    for (const int column : columns_[candidate.y]) {
      kept_from += in_channel_[column] == 2;
      kept_to += in_channel_[column] != 0 && counts[column] == 1;
    }
    steps_ += 2 * size_of(candidate.y);
    return change(x, from, candidate.y, candidate.to, kept_from, kept_to);
  }

  void exchange(int x, int from, int y, int to) {
    take(x);
    if (y >= 0) {
      take(y);
      put(y, from);
      members_[from][position_[x]] = y;
      members_[to][position_[y]] = x;
      std::swap(position_[x], position_[y]);
    } else {
      const int last = members_[from].back();
      members_[from][position_[x]] = last;
      position_[last] = position_[x];
      members_[from].pop_back();
      position_[x] = members_[to].size();
      members_[to].push_back(x);
    }
    put(x, to);
    rated_[from] = rate(cost_[from]);
    rated_[to] = rate(cost_[to]);
  }

  void take(int x) {
    const int group = group_of_[x];
    std::uint8_t* counts = counts_.data() + group * column_count_;
    int* fresh = fresh_.data() + group * channel_count_;
    cost_[group] -= size_of(x) + kLoadWeight * sole_[x];
    group_of_[x] = -1;
    for (const int column : columns_[x]) {
      const int left = --counts[column];
      if (left == 0) {
        for (const int reader : readers_[column]) ++fresh[reader];
        steps_ += static_cast<std::int64_t>(readers_[column].size());
      } else if (left == 1) {
        ++sole_[reader_in(group, column)];
      }
    }
    steps_ += size_of(x);
  }

  void put(int x, int group) {
    std::uint8_t* counts = counts_.data() + group * column_count_;
    int* fresh = fresh_.data() + group * channel_count_;
    sole_[x] = fresh[x];
    cost_[group] += size_of(x) + kLoadWeight * sole_[x];
    for (const int column : columns_[x]) {
      const int readers = ++counts[column];
      if (readers == 1) {
        for (const int reader : readers_[column]) --fresh[reader];
        steps_ += static_cast<std::int64_t>(readers_[column].size());
      } else if (readers == 2) {
        --sole_[reader_in(group, column)];
      }
    }
    group_of_[x] = group;
    steps_ += size_of(x);
  }

  // The one that there is.
  int reader_in(int group, int column) {
    const std::span<const int> readers = readers_[column];
    const auto found = std::find_if(readers.begin(), readers.end(), [&](int k) { return group_of_[k] == group; });
    steps_ += found - readers.begin();
    return *found;
  }

  const Lists columns_, readers_;  // of channels; of columns
  std::vector<std::vector<int>> members_;
  std::size_t capacity_, channel_count_, column_count_;
  std::vector<int> group_of_;
  std::vector<std::size_t> position_;  // in the group
  std::vector<std::uint8_t> counts_;   // of each group and column: readers
  std::vector<int> fresh_;             // of each group and channel: the channel's columns that the group does not load
  std::vector<int> sole_;              // of each channel: its columns that nobody else in its group reads
  std::vector<std::int64_t> cost_;
  std::vector<double> rated_;             // (cost x scale) ^ power
  std::vector<std::uint8_t> in_channel_;  // while x is looked at: 1 its columns, 2 those that only it reads
  std::vector<Candidate> best_;
  int power_ = 1;
  double scale_ = 1;
  std::int64_t steps_ = 0;
};

// The columns of each output channel; those that nobody reads have no number.
Lists columns_of_outputs(const SparsePattern& pattern, std::size_t& column_count) {
  Lists by_column;
  const Tap* previous = nullptr;
  for (const Tap& tap : pattern.taps) {  // sorted by (c, r, s, k)
    if (previous && (previous->c != tap.c || previous->r != tap.r || previous->s != tap.s)) by_column.end_list();
    by_column.add(tap.k);
    previous = &tap;
  }
  if (previous) by_column.end_list();
  column_count = by_column.count();
  return by_column.inverse(static_cast<std::size_t>(pattern.out_channels));
}

// Works on some of the groups at a time.
class ChannelExchange {
 public:
  ChannelExchange(const SparsePattern& pattern, std::vector<std::vector<int>>& groups, int capacity)
      : groups_(groups),
        capacity_(capacity),
        columns_(columns_of_outputs(pattern, column_count_)),
        number_of_(column_count_),
        numbered_by_(column_count_, -1) {}

  void work_on(std::size_t first, std::size_t last, std::int64_t effort) {
    if (last - first < 2) return;
    std::size_t nonzeros = 0;
    for (std::size_t g = first; g < last; ++g) nonzeros += nonzeros_of(g);
    const std::int64_t setup = FamilySearch::setup_steps(nonzeros, last - first);
    if (setup > effort / kSetupPart && last - first >= 4) {
      const std::size_t middle = first + (last - first) / 2;
      work_on(first, middle, effort / 2);
      work_on(middle, last, effort / 2);
      return;
    }
    search(first, last, effort);
  }

 private:
  static constexpr int kSetupPart = 4;  // a fourth of the effort is spent on setting up, at most

  std::size_t nonzeros_of(std::size_t group) const {
    std::size_t sum = 0;
    for (const int k : groups_[group]) sum += columns_[k].size();
    return sum;
  }

  void search(std::size_t first, std::size_t last, std::int64_t effort) {
    ++turn_;
    int columns = 0;
    Lists numbered;
    std::vector<int> channels;
    std::vector<std::vector<int>> members;
    for (std::size_t g = first; g < last; ++g) {
      members.emplace_back();
      for (const int k : groups_[g]) {
        members.back().push_back(static_cast<int>(channels.size()));
        channels.push_back(k);
        for (const int column : columns_[k]) {
          if (numbered_by_[column] != turn_) {
            numbered_by_[column] = turn_;
            number_of_[column] = columns++;
          }
          numbered.add(number_of_[column]);
        }
        numbered.end_list();
      }
    }
    auto better =
        FamilySearch(std::move(numbered), static_cast<std::size_t>(columns), std::move(members), capacity_).run(effort);
    if (!better) return;
    for (std::size_t g = first; g < last; ++g) {
      groups_[g].clear();
      for (const int member : (*better)[g - first]) groups_[g].push_back(channels[member]);
      std::sort(groups_[g].begin(), groups_[g].end());
    }
  }

  std::vector<std::vector<int>>& groups_;
  int capacity_;
  std::size_t column_count_ = 0;
  Lists columns_;                             // of each output channel
  std::vector<int> number_of_, numbered_by_;  // of each column: its number in a turn
  int turn_ = 0;
};

}  // namespace

std::vector<std::vector<int>> exchange_channels(const SparsePattern& pattern, std::vector<std::vector<int>> groups,
                                                int family, int capacity, std::int64_t effort) {
  ChannelExchange exchange(pattern, groups, capacity);
  const std::size_t step = static_cast<std::size_t>(family);
  for (std::size_t first = 0; first < groups.size(); first += step) {
    exchange.work_on(first, first + step, effort / static_cast<std::int64_t>(groups.size() / step));
  }
  return groups;
}

}  // namespace burin
