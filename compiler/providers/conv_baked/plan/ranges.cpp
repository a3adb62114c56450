#include "compiler/providers/conv_baked/plan/ranges.h"

#include <algorithm>

#include "ir/error.h"

namespace burin {
namespace {

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

}  // namespace

std::vector<std::size_t> cut_ranges(const std::vector<Piece>& pieces, int ranges, std::int64_t capacity) {
  return RangeCutter(pieces, capacity).cut(ranges);
}

}  // namespace burin
