// A cluster: blocks that run together, may load from each other's shared memory and send to it. A block without
// clusters is a cluster of its own.
//
// From one meeting of the cluster, or barrier, to the next each block runs by itself, one after the other; their order
// is turned round each time. A block that waits for what others send is asked again after them. A block that ends
// before its first barrier is none that the others meet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compiler/host/block.h"
#include "compiler/kernel_cluster.h"

namespace burin {

class Cluster {
 public:
  Cluster(const ClusterExtent& extent, int threads, int shared_bytes, std::size_t stack_bytes);

  // Runs the cluster that begins with block number `first` (x fastest) of the launch to its end, on the calling CPU
  // thread. The first fault with its block and thread, if there is one; then the rest of the cluster was not run.
  std::optional<std::string> run(const Launch& launch, std::uint32_t first);

  std::size_t size() const { return blocks_.size(); }
  // Null when there is none of this rank.
  Block* block(std::uint32_t rank) { return rank < blocks_.size() ? blocks_[rank].get() : nullptr; }

 private:
  ClusterExtent extent_;
  std::vector<std::unique_ptr<Block>> blocks_;  // by rank
};

}  // namespace burin
