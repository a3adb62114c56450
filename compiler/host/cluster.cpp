#include "compiler/host/cluster.h"

#include <fmt/format.h>

#include <algorithm>

namespace burin {

Cluster::Cluster(const ClusterExtent& extent, int threads, int shared_bytes, std::size_t stack_bytes)
    : extent_(extent) {
  for (int rank = 0; rank < extent.blocks(); ++rank) {
    blocks_.push_back(std::make_unique<Block>(threads, shared_bytes, stack_bytes));
  }
}

std::optional<std::string> Cluster::run(const Launch& launch, std::uint32_t first) {
  const auto width = static_cast<std::uint32_t>(extent_.x);
  for (std::uint32_t rank = 0; rank < blocks_.size(); ++rank) {
    blocks_[rank]->start(launch, first + rank % width + rank / width * launch.blocks_x, *this, rank);
  }
  for (bool ascending = true;; ascending = !ascending) {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t i = 0; i < blocks_.size(); ++i) {
        Block& block = *blocks_[ascending ? i : blocks_.size() - 1 - i];
        moved |= block.advance();
        if (block.fault()) return block.fault();
      }
    }
    const auto ended = [](const auto& block) { return block->ended(); };
    const auto waits = [](const auto& block) { return !block->ended() && block->meeting() == Block::Meeting::none; };
    const auto stuck = std::find_if(blocks_.begin(), blocks_.end(), waits);
    if (stuck != blocks_.end()) return (*stuck)->deadlock();
    const auto gone =
        std::find_if(blocks_.begin(), blocks_.end(), [](const auto& block) { return block->ended() && block->met(); });
    const auto waiting = std::find_if_not(blocks_.begin(), blocks_.end(), ended);
    if (waiting == blocks_.end()) return std::nullopt;
    if (gone != blocks_.end()) {
      return fmt::format(
          "block ({}, {}), thread 0: divergence: waits at a cluster barrier that block ({}, {}), which has ended, "
          "never reaches",
          (*waiting)->x(), (*waiting)->y(), (*gone)->x(), (*gone)->y());
    }
    for (const auto& block : blocks_) {
      if (block->ended() || block->meeting() == (*waiting)->meeting()) continue;
      return fmt::format(
          "block ({}, {}), thread 0: divergence: one of two blocks waits at a cluster barrier, and block ({}, {}) "
          "meets "
          "others",
          (*waiting)->x(), (*waiting)->y(), block->x(), block->y());
    }
    for (const auto& block : blocks_) {
      if (!block->ended()) block->pass_meeting();
    }
  }
}

}  // namespace burin
