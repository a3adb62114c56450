// Cuts a row of pieces into ranges of nearly the same weight.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace burin {

struct Piece {
  std::int64_t weight = 0;
  int items = 1;
  // What lies between this piece and the one before it: part of a range that holds both, else of none.
  std::int64_t gap_weight = 0;
  int gap_items = 0;
};

// The ends of `ranges` consecutive ranges, the last end is pieces.size(). Each holds at most `capacity` items, and the
// heaviest is as light as that allows; the others are then nearly even, and none is empty where there are as many
// pieces. The capacity must suffice when ranges are filled one after the other.
std::vector<std::size_t> cut_ranges(const std::vector<Piece>& pieces, int ranges, std::int64_t capacity);

}  // namespace burin
