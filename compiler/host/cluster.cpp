#include "compiler/host/cluster.h"

#include <fmt/format.h>

#include <algorithm>

namespace burin {

Cluster::Cluster(int blocks, int threads, int shared_bytes, std::size_t stack_bytes) {
  for (int rank = 0; rank < blocks; ++rank) {
    blocks_.push_back(std::make_unique<Block>(threads, shared_bytes, stack_bytes));
  }
}

std::optional<std::string> Cluster::run(const Launch& launch, std::uint32_t first) {
  for (std::uint32_t rank = 0; rank < blocks_.size(); ++rank) {
    blocks_[rank]->start(launch, first + rank * launch.blocks_x, *this);
  }
  for (bool ascending = true;; ascending = !ascending) {
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      Block& block = *blocks_[ascending ? i : blocks_.size() - 1 - i];
      block.advance();
      if (block.fault()) return block.fault();
    }
    const auto ended = [](const auto& block) { return block->ended(); };
    const auto gone = std::find_if(blocks_.begin(), blocks_.end(), ended);
    const auto waiting = std::find_if_not(blocks_.begin(), blocks_.end(), ended);
    if (waiting == blocks_.end()) return std::nullopt;
    if (gone != blocks_.end()) {
      return fmt::format(
          "block ({}, {}), thread 0: divergence: waits at a cluster barrier that block ({}, {}), which has ended, "
          "never reaches",
          (*waiting)->x(), (*waiting)->y(), (*gone)->x(), (*gone)->y());
    }
    for (const auto& block : blocks_) block->pass_cluster_barrier();
  }
}

}  // namespace burin
