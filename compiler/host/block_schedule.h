// In which order the blocks of a launch run.
//
// A correct kernel gives the same result in any order, but not every order runs all of its code: where the last block
// to arrive adds the partial sums of a tile, only that block runs its reduction and epilogue. So each tile chooses one
// split to be last, each in turn; with fewer tiles than splits, the launch runs in several passes until every split had
// its turn. Within that, blocks run in an order that is the same in every run but not the order of their numbers.
//
// Where blocks form clusters, each turn is a whole cluster's, named by its first block; the tiles of a cluster make the
// same choice.
#pragma once

#include <cstdint>
#include <optional>

#include "compiler/kernel_cluster.h"
#include "ir/kernel.h"

namespace burin {

class BlockSchedule {
 public:
  // `width`: blocks of the grid in x, whole clusters.
  BlockSchedule(const LaunchGeometry& launch, std::int64_t width, const ClusterExtent& cluster = {});

  std::uint64_t turns() const { return turns_; }
  std::int64_t passes() const { return splits_ > columns_ ? (splits_ + columns_ - 1) / columns_ : 1; }
  // Phase 1 holds the blocks that are to be last; it begins when all blocks of phase 0 have ended.
  int phases() const { return splits_ > 1 ? 2 : 1; }

  // The block that takes its turn at `position` (below turns()), if it belongs to the phase.
  std::optional<std::uint32_t> block(std::int64_t pass, int phase, std::uint64_t position) const {
    const std::uint64_t turn = (position * step_ + first_) % turns_;  // below 2^62
    const auto columns = static_cast<std::uint64_t>(columns_);
    const std::uint64_t column = turn % columns, row = turn / columns;
    if (splits_ > 1 && is_last(pass, column, row) != (phase == 1)) return std::nullopt;
    return static_cast<std::uint32_t>((row * cluster_y_ * columns + column) * cluster_x_);
  }

 private:
  // Columns are those of clusters, each of which has one slice then.
  bool is_last(std::int64_t pass, std::uint64_t column, std::uint64_t slice) const {
    const auto tile = static_cast<std::int64_t>(column);
    return static_cast<std::int64_t>(slice) % splits_ == (tile + pass * columns_) % splits_;
  }

  std::uint64_t cluster_x_ = 1, cluster_y_ = 1;
  std::int64_t columns_ = 1, splits_ = 1;  // columns: clusters in x
  std::uint64_t turns_ = 1;
  // A permutation that needs no memory: multiply by what has no common factor with the number of turns, and shift.
  std::uint64_t step_ = 1, first_ = 0;
};

}  // namespace burin
