#include "compiler/providers/conv_gathered/packing.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <map>
#include <numeric>
#include <random>
#include <utility>

#include "compiler/providers/template_provider.h"
#include "ir/error.h"
#include "ir/saturate.h"

namespace burin {
namespace {

constexpr int kLanes = 32;

int columns_of(const ConvShape& shape) { return shape.channels_per_group() * filter_positions(shape); }
int chunk_of(const ConvShape& shape, const Packing& packing, int column) {
  return column / filter_positions(shape) / packing.chunk_channels;
}

// ---- the order of rows

// Columns as bits, 64 to a word.
class BitRow {
 public:
  explicit BitRow(int bits) : words_(static_cast<std::size_t>(ceil_div(bits, 64))) {}
  void set(int bit) { words_[static_cast<std::size_t>(bit) / 64] |= std::uint64_t{1} << (bit % 64); }
  void clear(int bit) { words_[static_cast<std::size_t>(bit) / 64] &= ~(std::uint64_t{1} << (bit % 64)); }
  bool has(int bit) const { return (words_[static_cast<std::size_t>(bit) / 64] >> (bit % 64) & 1U) != 0; }
  const std::vector<std::uint64_t>& words() const { return words_; }

 private:
  std::vector<std::uint64_t> words_;
};

// std::popcount() is a call without the instruction, which not every x86-64 has.
constexpr int count_ones(std::uint64_t bits) {
  constexpr std::uint64_t kPairs = 0x5555555555555555, kFours = 0x3333333333333333, kBytes = 0x0f0f0f0f0f0f0f0f;
  bits -= (bits >> 1) & kPairs;
  bits = (bits & kFours) + ((bits >> 2) & kFours);
  bits = (bits + (bits >> 4)) & kBytes;
  return static_cast<int>((bits * 0x0101010101010101) >> 56);
}
static_assert(count_ones(0) == 0 && count_ones(~std::uint64_t{0}) == 64 && count_ones(0x8000000100010003) == 5);

// A group has columns by which it is live.
struct RowGroup {
  explicit RowGroup(int columns) : rows_with(static_cast<std::size_t>(columns)), any(columns), one(columns) {}
  std::vector<std::uint8_t> rows_with;  // of each column
  BitRow any, one;                      // columns that some row has, and that just one has
  int live = 0;
};

// How many columns live with `in` in the place of `out`.
template <typename Count>
[[gnu::always_inline]] inline int live_with(const RowGroup& group, const BitRow& out, const BitRow& in, Count count) {
  int live = group.live;
  const std::vector<std::uint64_t>&any = group.any.words(), &one = group.one.words(), &gone = out.words(),
        &come = in.words();
  for (std::size_t i = 0; i < gone.size(); ++i) {
    live += count(come[i] & ~any[i]) - count(one[i] & gone[i] & ~come[i]);
  }
  return live;
}

using LiveWith = int(const RowGroup&, const BitRow& out, const BitRow& in);
int live_with_anywhere(const RowGroup& group, const BitRow& out, const BitRow& in) {
  return live_with(group, out, in, count_ones);
}
#ifdef __x86_64__
[[gnu::target("popcnt")]] int live_with_popcnt(const RowGroup& group, const BitRow& out, const BitRow& in) {
  return live_with(group, out, in, [](std::uint64_t bits) { return __builtin_popcountll(bits); });
}
LiveWith* best_live_with() { return __builtin_cpu_supports("popcnt") ? live_with_popcnt : live_with_anywhere; }
#else
LiveWith* best_live_with() { return live_with_anywhere; }
#endif

// Exchanges rows of row groups as long as that lowers the sum of a high power of their live columns: it is the fullest
// group that the others wait for.
class RowClusters {
 public:
  RowClusters(const std::vector<BitRow>& rows, int columns, int group_rows)
      : rows_(rows),
        columns_(columns),
        group_rows_(group_rows),
        order_(rows.size()),
        costs_(static_cast<std::size_t>(columns) + 1) {
    constexpr double kPower = 8;
    for (std::size_t live = 0; live < costs_.size(); ++live) {
      costs_[live] = std::pow(static_cast<double>(live) / columns_, kPower);
    }
    for (std::size_t i = 0; i < order_.size(); ++i) order_[i] = static_cast<int>(i);
    for (std::size_t first = 0; first < order_.size(); first += static_cast<std::size_t>(group_rows)) {
      RowGroup& group = groups_.emplace_back(columns);
      for (int i = 0; i < group_rows; ++i) add(group, row(static_cast<int>(first) + i), 1);
    }
  }

  std::vector<int> run() {
    constexpr int kTriesPerRow = 24;
    if (groups_.size() < 2) return order_;
    std::mt19937 random(1);
    const auto below = [&](std::size_t limit) { return static_cast<int>(random() % limit); };
    for (int i = 0; i < kTriesPerRow * static_cast<int>(order_.size()); ++i) {
      const auto fullest = std::ranges::max_element(groups_, {}, &RowGroup::live) - groups_.begin();
      const int a = i % 2 == 0 ? static_cast<int>(fullest) : below(groups_.size());
      const int b = (a + 1 + below(groups_.size() - 1)) % static_cast<int>(groups_.size());
      try_exchange(a, a * group_rows_ + below(static_cast<std::size_t>(group_rows_)), b);
    }
    return order_;
  }

 private:
  const BitRow& row(int place) const {
    return rows_[static_cast<std::size_t>(order_[static_cast<std::size_t>(place)])];
  }
  RowGroup& group(int index) { return groups_[static_cast<std::size_t>(index)]; }

  void add(RowGroup& group, const BitRow& row, int change) const {
    for (int column = 0; column < columns_; ++column) {
      if (!row.has(column)) continue;
      std::uint8_t& count = group.rows_with[static_cast<std::size_t>(column)];
      group.live -= count > 0 ? 1 : 0;
      count = static_cast<std::uint8_t>(count + change);
      group.live += count > 0 ? 1 : 0;
      count > 0 ? group.any.set(column) : group.any.clear(column);
      count == 1 ? group.one.set(column) : group.one.clear(column);
    }
  }

  double cost(int live) const { return costs_[static_cast<std::size_t>(live)]; }

  void try_exchange(int a, int place, int b) {
    const double before = cost(group(a).live) + cost(group(b).live);
    double best = before - 1e-12;
    int found = -1;
    for (int other = b * group_rows_; other < (b + 1) * group_rows_; ++other) {
      const double of_a = cost(live_with_(group(a), row(place), row(other)));
      if (of_a >= best) continue;
      const double after = of_a + cost(live_with_(group(b), row(other), row(place)));
      if (after >= best) continue;
      best = after;
      found = other;
    }
    if (found < 0) return;
    const BitRow &mine = row(place), &theirs = row(found);
    add(group(a), mine, -1);
    add(group(b), theirs, -1);
    add(group(a), theirs, 1);
    add(group(b), mine, 1);
    std::swap(order_[static_cast<std::size_t>(place)], order_[static_cast<std::size_t>(found)]);
  }

  const std::vector<BitRow>& rows_;
  int columns_, group_rows_;
  std::vector<int> order_;
  std::vector<RowGroup> groups_;
  std::vector<double> costs_;  // of a group, by the number of its live columns
  LiveWith* live_with_ = best_live_with();
};

// ---- the order of columns

// Whether no row has more than half of the columns, of which there are four or two.
bool go_together(std::span<const std::uint64_t> masks) {
  if (masks.size() == 2) return (masks[0] & masks[1]) == 0;
  return ((masks[0] & masks[1] & (masks[2] | masks[3])) | (masks[2] & masks[3] & (masks[0] | masks[1]))) == 0;
}

// The ways to part so many columns into halves, as bits of the first, which has column 0.
std::vector<unsigned> partings(int columns) {
  std::vector<unsigned> result;
  for (unsigned bits = 1; bits < 1U << columns; bits += 2) {
    if (std::popcount(bits) == columns / 2) result.push_back(bits);
  }
  return result;
}

using Columns = std::vector<int>;  // kNoColumn where there is none

// Takes so many columns at a time as lie in different banks, and go together where the weights are sparse.
class ColumnPicker {
 public:
  ColumnPicker(const ColumnMasks& masks, bool sparse, std::vector<std::vector<int>> by_bank)
      : masks_(masks),
        sparse_(sparse),
        by_bank_(std::move(by_bank)),
        partings_(partings(static_cast<int>(by_bank_.size()))) {
    for (std::vector<int>& columns : by_bank_) std::ranges::shuffle(columns, random_);
  }

  std::vector<Columns> run() {
    std::vector<Columns> picked;
    while (left() > 0) picked.push_back(sparse_ ? take_sparse() : take());
    return picked;
  }

 private:
  std::size_t left() const {
    std::size_t sum = 0;
    for (const std::vector<int>& columns : by_bank_) sum += columns.size();
    return sum;
  }

  std::size_t banks() const { return by_bank_.size(); }

  // A column of each bank, of the fullest ones first; of a bank a second one only where the others are empty.
  std::vector<int> pick() {
    std::vector<int> picked;
    while (picked.size() < banks() && left() > 0) {
      std::vector<std::size_t> order(banks());
      std::iota(order.begin(), order.end(), std::size_t{0});
      std::ranges::stable_sort(order, std::ranges::greater(), [&](std::size_t bank) { return by_bank_[bank].size(); });
      for (const std::size_t bank : order) {
        if (picked.size() == banks() || by_bank_[bank].empty()) continue;
        picked.push_back(by_bank_[bank].back());
        bank_of_[by_bank_[bank].back()] = bank;
        by_bank_[bank].pop_back();
      }
    }
    return picked;
  }

  Columns take() {
    Columns picked = pick();
    picked.resize(banks(), kNoColumn);
    return picked;
  }

  std::uint64_t mask(int column) const { return column == kNoColumn ? 0 : masks_[static_cast<std::size_t>(column)]; }

  // The first of the rows that have most of the columns.
  int fullest_row(const std::vector<int>& picked) const {
    // Bit i of a row's number of columns is the row's bit of counts[i].
    std::array<std::uint64_t, 6> counts{};
    for (const int column : picked) {
      std::uint64_t carry = mask(column);
      for (std::uint64_t& bit : counts) carry = std::exchange(bit, bit ^ carry) & carry;
    }
    std::uint64_t fullest = ~std::uint64_t{0};
    for (auto bit = counts.rbegin(); bit != counts.rend(); ++bit) {
      if ((fullest & *bit) != 0) fullest &= *bit;
    }
    return std::countr_zero(fullest);
  }

  // Exchanges columns for others of their banks until they go together; at last leaves some for later.
  Columns take_sparse() {
    constexpr int kExchanges = 48;
    Columns picked = take(), parted(banks());
    std::vector<std::uint64_t> parted_masks(banks());
    for (int attempt = 0;; ++attempt) {
      for (const unsigned bits : partings_) {
        std::size_t first = 0, second = banks() / 2;
        for (std::size_t i = 0; i < banks(); ++i) parted[(bits >> i & 1U) != 0 ? first++ : second++] = picked[i];
        std::ranges::transform(parted, parted_masks.begin(), [&](int column) { return mask(column); });
        const auto both = std::span<const std::uint64_t>(parted_masks);
        if (go_together(both.first(banks() / 2)) && go_together(both.subspan(banks() / 2))) return parted;
      }
      exchange(picked, attempt < kExchanges);
    }
  }

  // Takes out one of the columns that the fullest row has.
  void exchange(std::vector<int>& picked, bool may_replace) {
    const int fullest = fullest_row(picked);
    std::vector<std::size_t> of_row;
    for (std::size_t i = 0; i < picked.size(); ++i) {
      if ((mask(picked[i]) >> fullest & 1U) != 0) of_row.push_back(i);
    }
    const std::size_t place = of_row[random_() % of_row.size()];
    std::vector<int>& others = by_bank_[bank_of_.at(picked[place])];
    if (may_replace && !others.empty()) {
      int& other = others[random_() % others.size()];
      bank_of_[other] = bank_of_.at(picked[place]);
      std::swap(other, picked[place]);
      return;
    }
    // It comes last again, so that the next ones begin with others.
    others.insert(others.begin(), picked[place]);
    picked[place] = kNoColumn;
  }

  const ColumnMasks& masks_;
  bool sparse_;
  std::vector<std::vector<int>> by_bank_;
  std::vector<unsigned> partings_;
  std::map<int, std::size_t> bank_of_;  // of what was picked
  std::mt19937 random_{2};
};

std::vector<std::vector<int>> by_bank(const ConvShape& shape, const Packing& packing, const std::vector<int>& columns) {
  std::vector<std::vector<int>> result(static_cast<std::size_t>(packing.octet_banks()));
  for (const int column : columns) {
    const int place = column_place(shape, packing, column);
    result[static_cast<std::size_t>(place % packing.octet_banks())].push_back(column);
  }
  return result;
}

// Takes from `columns` the chunk's own ones that do not fill a step, of the fullest banks.
std::vector<int> take_rest(const ConvShape& shape, const Packing& packing, int chunk, std::vector<int>& columns) {
  const auto is_own = [&](int column) { return chunk_of(shape, packing, column) == chunk; };
  std::size_t rest = columns.size() % static_cast<std::size_t>(packing.step_columns());
  std::vector<std::vector<int>> banks = by_bank(shape, packing, columns);
  std::vector<int> taken;
  for (; rest > 0; --rest) {
    std::vector<int>* fullest = nullptr;
    for (std::vector<int>& bank : banks) {
      if (std::ranges::none_of(bank, is_own)) continue;
      if (fullest == nullptr || bank.size() > fullest->size()) fullest = &bank;
    }
    if (fullest == nullptr) break;
    const auto last = std::find_if(fullest->rbegin(), fullest->rend(), is_own);
    taken.push_back(*last);
    fullest->erase(std::next(last).base());
  }
  std::erase_if(columns, [&](int column) { return std::ranges::find(taken, column) != taken.end(); });
  return taken;
}

std::vector<int> live_columns(const ConvShape& shape, const ColumnMasks& masks, const Packing& packing, int chunk) {
  std::vector<int> live;
  const int begin = chunk * packing.chunk_channels * filter_positions(shape);
  const int end = std::min(begin + packing.chunk_channels * filter_positions(shape), columns_of(shape));
  for (int column = begin; column < end; ++column) {
    if (masks[static_cast<std::size_t>(column)] != 0) live.push_back(column);
  }
  return live;
}

}  // namespace

int Packing::turn_of(int slot) const {
  const int bank_eights = octet_banks();
  const int together = std::max(1, bank_eights / column_eights());
  return slot / together % std::min(column_eights(), bank_eights);
}

int Packing::chunks(const ConvShape& shape) const {
  return static_cast<int>(ceil_div(shape.channels_per_group(), chunk_channels));
}

std::vector<int> order_outputs(const ConvShape& shape, const SparsePattern& pattern, const Packing& packing) {
  const int outputs = shape.outputs_per_group(), columns = columns_of(shape);
  const auto padded = static_cast<std::size_t>(round_up(outputs, packing.set_rows));
  std::vector<std::vector<BitRow>> rows(static_cast<std::size_t>(shape.groups),
                                        std::vector<BitRow>(padded, BitRow(columns)));
  for (const Tap& tap : pattern.taps) {
    const int group = tap.k / outputs, channel = tap.c - group * shape.channels_per_group();
    rows[static_cast<std::size_t>(group)][static_cast<std::size_t>(tap.k % outputs)].set(
        (channel * shape.kernel_h + tap.r) * shape.kernel_w + tap.s);
  }
  std::vector<int> order;
  for (int group = 0; group < shape.groups; ++group) {
    std::vector<int> clustered = RowClusters(rows[static_cast<std::size_t>(group)], columns, packing.group_rows).run();
    for (auto first = clustered.begin(); first != clustered.end(); first += packing.group_rows) {
      std::sort(first, first + packing.group_rows);  // neighbours are stored side by side
    }
    for (const int row : clustered) order.push_back(row < outputs ? group * outputs + row : kNoRow);
  }
  return order;
}

std::vector<ColumnMasks> column_masks(const ConvShape& shape, const SparsePattern& pattern, std::span<const int> rows,
                                      int group_rows) {
  std::vector<std::size_t> place(static_cast<std::size_t>(shape.out_channels));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i] != kNoRow) place[static_cast<std::size_t>(rows[i])] = i;
  }
  std::vector<ColumnMasks> masks(rows.size() / static_cast<std::size_t>(group_rows),
                                 ColumnMasks(static_cast<std::size_t>(columns_of(shape))));
  for (const Tap& tap : pattern.taps) {
    const int group = tap.k / shape.outputs_per_group(), channel = tap.c - group * shape.channels_per_group();
    const std::size_t at = place[static_cast<std::size_t>(tap.k)];
    const int column = (channel * shape.kernel_h + tap.r) * shape.kernel_w + tap.s;
    masks[at / static_cast<std::size_t>(group_rows)][static_cast<std::size_t>(column)] |=
        std::uint64_t{1} << (at % static_cast<std::size_t>(group_rows));
  }
  return masks;
}

GatheredSteps gather(const ConvShape& shape, const ColumnMasks& masks, const Packing& packing) {
  const auto step_columns = static_cast<std::size_t>(packing.step_columns());
  const int chunks = packing.chunks(shape);
  GatheredSteps steps(static_cast<std::size_t>(chunks));
  std::vector<int> carried;
  for (int chunk = 0; chunk < chunks; ++chunk) {
    std::vector<int> columns = std::move(carried);
    carried.clear();
    const std::vector<int> live = live_columns(shape, masks, packing, chunk);
    columns.insert(columns.end(), live.begin(), live.end());
    if (packing.carries && chunk + 1 < chunks) carried = take_rest(shape, packing, chunk, columns);
    std::vector<GatheredStep>& of_chunk = steps[static_cast<std::size_t>(chunk)];
    for (const Columns& picked : ColumnPicker(masks, packing.sparse, by_bank(shape, packing, columns)).run()) {
      if (of_chunk.empty() || of_chunk.back().size() == step_columns) of_chunk.emplace_back();
      of_chunk.back().insert(of_chunk.back().end(), picked.begin(), picked.end());
    }
    if (!of_chunk.empty()) of_chunk.back().resize(step_columns, kNoColumn);
  }
  return steps;
}

int column_place(const ConvShape& shape, const Packing& packing, int column) {
  const int position = column % filter_positions(shape), channel = column / filter_positions(shape);
  const int of_chunk = channel % packing.chunk_channels, together = packing.channels_together;
  return (of_chunk / together * packing.channel_pitch +
          position / shape.kernel_w * shape.dilation_h * packing.row_pitch +
          position % shape.kernel_w * packing.col_pitch) *
             together +
         of_chunk % together;
}

int step_words(const Packing& packing) {
  const int tiles = packing.group_rows / kTileRows;
  constexpr int kTileWords = kLanes * 4;
  const int weights = packing.sparse ? tiles * kTileWords : 2 * tiles * kTileWords;
  const int places = packing.sparse ? static_cast<int>(ceil_div(tiles, 2)) * kLanes : 0;
  return weights + places + packing.step_columns();
}

namespace {

class StepEncoder {
 public:
  StepEncoder(const ConvLayer& layer, const Packing& packing, FactorType factors, std::span<const int> rows,
              const GatheredStep& step, int chunk)
      : layer_(layer), packing_(packing), factors_(factors), rows_(rows), step_(step), chunk_(chunk) {}

  std::vector<std::uint32_t> run() {
    const int tiles = packing_.group_rows / kTileRows;
    if (packing_.by_column) {
      for (int slot = 0; slot < packing_.step_columns(); ++slot) add_column(slot);
    } else {
      for (int tile = 0; tile < tiles; ++tile) packing_.sparse ? add_sparse_tile(tile) : add_tile(tile);
    }
    if (packing_.sparse) {
      for (int first = 0; first < tiles; first += 2) add_places(first, std::min(tiles - first, 2));
    }
    add_columns();
    return std::move(words_);
  }

 private:
  float weight(int row, int slot) const {
    const int channel = rows_[static_cast<std::size_t>(row)], column = step_[static_cast<std::size_t>(slot)];
    if (channel == kNoRow || column == kNoColumn) return 0;
    const int position = column % filter_positions(layer_.shape);
    return layer_.weight(channel, column / filter_positions(layer_.shape), position / layer_.shape.kernel_w,
                         position % layer_.shape.kernel_w);
  }

  // One value in TF32, else two.
  std::uint32_t word_of_values(float first, float second) const {
    if (factors_ == FactorType::tf32) return std::bit_cast<std::uint32_t>(rounded(factors_, first));
    return half_word(factors_ == FactorType::f16 ? ElementType::f16 : ElementType::bf16, first, second);
  }
  // The weights of a row, in so many slots as a word has values.
  std::uint32_t word_of(int row, std::span<const int> slots) const {
    return word_of_values(weight(row, slots.front()), weight(row, slots.back()));
  }

  void add_tile(int tile) {
    const int values = packing_.word_values();
    for (int half = 0; half < 2; ++half) {
      for (int lane = 0; lane < kLanes; ++lane) {
        for (int word = 0; word < 4; ++word) {
          const int row = tile * kTileRows + lane / 4 + word % 2 * 8;
          const int slot = values * (8 * half + lane % 4 + word / 2 * 4);
          words_.push_back(word_of(row, std::array{slot, slot + values - 1}));
        }
      }
    }
  }

  // All rows of a slot, in eights that take turns.
  void add_column(int slot) {
    const int values = packing_.word_values();
    for (int place = 0; place < packing_.column_eights(); ++place) {
      const int first = (place ^ packing_.turn_of(slot)) * 8;
      for (int row = first; row < first + 8; row += values) {
        words_.push_back(word_of_values(weight(row, slot), weight(row + values - 1, slot)));
      }
    }
  }

  // The slots that a row stores of columns side by side, half of them, in their order.
  std::vector<int> stored(int row, int number) const {
    const int first = number * packing_.sparse_columns(), values = packing_.word_values();
    std::vector<int> found, others;
    for (int slot = first; slot < first + packing_.sparse_columns(); ++slot) {
      (weight(row, slot) != 0 ? found : others).push_back(slot);
    }
    BURIN_CHECK(std::ssize(found) <= values, "{} nonzeros in {} columns", found.size(), packing_.sparse_columns());
    found.insert(found.end(), others.begin(), others.begin() + (values - std::ssize(found)));
    std::ranges::sort(found);
    return found;
  }

  void add_sparse_tile(int tile) {
    for (int lane = 0; lane < kLanes; ++lane) {
      for (int word = 0; word < 4; ++word) {
        const int row = tile * kTileRows + lane / 4 + word % 2 * 8;
        words_.push_back(word_of(row, stored(row, lane % 4 + word / 2 * 4)));
      }
    }
  }

  // Four bits that say which ones these are: the first and the second of four halves, of which a word is two.
  std::uint32_t place_bits(int row, int number) const {
    const std::vector<int> slots = stored(row, number);
    const int begin = number * packing_.sparse_columns();
    const int first = (slots.front() - begin) * packing_.value_bytes / 2;
    const int second = slots.size() > 1 ? slots.back() - begin : first + 1;
    return static_cast<std::uint32_t>(first | second << 2);
  }

  // Of one or two tiles: lane 4 g + 2 i + h has those of rows g and g + 8 of tile i, from column 4 h of what is stored
  // on.
  void add_places(int first, int tiles) {
    for (int lane = 0; lane < kLanes; ++lane) {
      const int tile = first + lane % 4 / 2;
      std::uint32_t word = 0x44444444;  // the first half of what lies side by side
      if (tile < first + tiles) {
        word = 0;
        for (int high = 0; high < 2; ++high) {
          for (int i = 0; i < 4; ++i) {
            word |= place_bits(tile * kTileRows + lane / 4 + high * 8, lane % 2 * 4 + i) << (16 * high + 4 * i);
          }
        }
      }
      words_.push_back(word);
    }
  }

  // Of halves, lane l gives the place of column l; of words, a lane reads four columns: that of its number among four,
  // and every fourth one behind it.
  void add_columns() {
    const std::vector<std::uint32_t> places = column_words();
    if (packing_.value_bytes != kWordBytes) {
      words_.insert(words_.end(), places.begin(), places.end());
      return;
    }
    for (std::size_t i = 0; i < places.size(); ++i) words_.push_back(places[i / 4 + i % 4 * 4]);
  }

  // A slot without a column reads one of the chunk's own that lies in a bank that no other slot of its eight, or of its
  // four, reads.
  std::vector<std::uint32_t> column_words() const {
    constexpr std::uint32_t kCarried = 0x80000000;    // it lies in the chunk before
    constexpr std::uint32_t kEmptySlot = 0x80000000;  // by column, where nothing is carried: the slot has no column
    const auto banks = static_cast<std::size_t>(packing_.octet_banks());
    const ConvShape& shape = layer_.shape;
    const int begin = chunk_ * packing_.chunk_channels * filter_positions(shape);
    const int end = std::min(begin + packing_.chunk_channels * filter_positions(shape), columns_of(shape));
    const auto place = [&](int column) { return column_place(shape, packing_, column); };
    const auto bank = [&](int column) { return static_cast<std::size_t>(place(column)) % banks; };
    std::vector<std::uint32_t> words;
    for (std::size_t first = 0; first < step_.size(); first += banks) {
      std::vector<bool> taken(banks);
      const auto slots = std::span(step_).subspan(first, banks);
      for (const int column : slots) {
        if (column != kNoColumn) taken[bank(column)] = true;
      }
      int filling = begin;
      for (const int column : slots) {
        int chosen = column;
        if (column == kNoColumn) {
          while (filling + 1 < end && taken[bank(filling)]) ++filling;
          chosen = filling;
          taken[bank(filling)] = true;
        }
        const auto byte = static_cast<std::uint32_t>(place(chosen) * packing_.octet_bytes());
        const std::uint32_t carried = chunk_of(shape, packing_, chosen) == chunk_ ? 0 : kCarried;
        const std::uint32_t empty = packing_.by_column && column == kNoColumn ? kEmptySlot : 0;
        words.push_back(byte | carried | empty);
      }
    }
    return words;
  }

  const ConvLayer& layer_;
  const Packing& packing_;
  FactorType factors_;
  std::span<const int> rows_;
  const GatheredStep& step_;
  int chunk_;
  std::vector<std::uint32_t> words_;
};

}  // namespace

std::vector<std::uint32_t> encode_step(const ConvLayer& layer, const Packing& packing, FactorType factors,
                                       std::span<const int> rows, const GatheredStep& step, int chunk) {
  return StepEncoder(layer, packing, factors, rows, step, chunk).run();
}

bool fills_tiles(const ConvShape& shape) {
  return shape.groups == 1 || (shape.channels_per_group() >= kTileRows && shape.outputs_per_group() >= kTileRows);
}

bool has_whole_octets(const ConvShape& shape) {
  return shape.groups == 1 || shape.channels_per_group() % kOctetChannels == 0;
}

bool can_hold(FactorType factors, const ConvLayer& layer) {
  return std::ranges::all_of(layer.weights, [&](float weight) { return std::isfinite(rounded(factors, weight)); });
}

Gathered gather_layer(const ConvLayer& layer, const ConvShape& shape, const Packing& packing) {
  const SparsePattern pattern = analyse(layer);
  Gathered gathered{.rows = order_outputs(shape, pattern, packing), .groups = {}};
  for (const ColumnMasks& masks : column_masks(shape, pattern, gathered.rows, packing.group_rows)) {
    for (const auto& steps : gathered.groups.emplace_back(gather(shape, masks, packing))) {
      gathered.step_limit = std::max(gathered.step_limit, static_cast<int>(steps.size()));
    }
  }
  return gathered;
}

MultipliedColumns count_columns(const ConvShape& shape, const Packing& packing, const Gathered& gathered) {
  // Of the weights of a row, sparse products take half.
  const std::int64_t step_slots = std::int64_t{packing.group_rows} * packing.step_columns() / (packing.sparse ? 2 : 1);
  const auto group_rows = static_cast<std::size_t>(packing.group_rows);
  MultipliedColumns count;
  for (std::size_t i = 0; i < gathered.groups.size(); ++i) {
    const auto rows = std::span(gathered.rows).subspan(i * group_rows, group_rows);
    if (std::ranges::all_of(rows, [](int row) { return row == kNoRow; })) continue;  // it fills up the last set
    count.columns += columns_of(shape);
    for (const std::vector<GatheredStep>& steps : gathered.groups[i]) {
      count.slots += std::ssize(steps) * step_slots;
      for (const GatheredStep& step : steps) {
        count.live += std::ranges::count_if(step, [](int column) { return column != kNoColumn; });
      }
    }
  }
  return count;
}

std::int64_t panel_words(const Packing& packing, int step_limit) {
  constexpr int kQuad = 4;
  return ceil_div(packing.row_groups(), kQuad) * kQuad +
         std::int64_t{packing.row_groups()} * step_limit * step_words(packing);
}

std::int64_t encoded_words(const ConvShape& shape, const Packing& packing, const Gathered& gathered) {
  constexpr int kRowWords = 2;
  const std::int64_t panels = std::ssize(gathered.rows) / packing.set_rows * packing.chunks(shape);
  return panels * panel_words(packing, gathered.step_limit) + kRowWords * std::ssize(gathered.rows);
}

std::vector<std::uint32_t> encode_panels(const ConvLayer& layer, const ConvShape& shape, const Packing& packing,
                                         FactorType factors, const Gathered& gathered) {
  const auto panel = static_cast<std::size_t>(panel_words(packing, gathered.step_limit));
  const auto row_groups = static_cast<std::size_t>(packing.row_groups());
  const auto group_rows = static_cast<std::size_t>(packing.group_rows);
  const auto group_words = static_cast<std::size_t>(gathered.step_limit * step_words(packing));
  std::vector<std::uint32_t> words;
  for (std::size_t set = 0; set * row_groups < gathered.groups.size(); ++set) {
    for (int chunk = 0; chunk < packing.chunks(shape); ++chunk) {
      const std::size_t begin = words.size();
      words.resize(begin + panel);
      for (std::size_t i = 0; i < row_groups; ++i) {
        const std::size_t group = set * row_groups + i;
        const std::vector<GatheredStep>& steps = gathered.groups[group][static_cast<std::size_t>(chunk)];
        words[begin + i] = static_cast<std::uint32_t>(steps.size());
        std::size_t at = begin + panel - (row_groups - i) * group_words;
        for (const GatheredStep& step : steps) {
          const auto encoded = encode_step(
              layer, packing, factors, std::span(gathered.rows).subspan(group * group_rows, group_rows), step, chunk);
          std::ranges::copy(encoded, words.begin() + static_cast<std::ptrdiff_t>(at));
          at += encoded.size();
        }
      }
    }
  }
  int filling = shape.out_channels;
  const auto stored = static_cast<int>(round_up(shape.out_channels, packing.channels_together));
  for (const int row : gathered.rows) {
    words.push_back(static_cast<std::uint32_t>(row == kNoRow && filling < stored ? filling++ : row));
    const float bias = row == kNoRow || layer.bias.empty() ? 0 : layer.bias[static_cast<std::size_t>(row)];
    words.push_back(std::bit_cast<std::uint32_t>(bias));
  }
  BURIN_CHECK(filling == stored, "of {} channels that are stored {} have a row", stored, filling);
  return words;
}

}  // namespace burin
