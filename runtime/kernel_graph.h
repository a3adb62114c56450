// A CUDA graph of kernels that is put together node by node, not captured.
#pragma once

#include <memory>
#include <vector>

#include "runtime/kernel_launch.h"

namespace burin {

struct GraphEdge {
  int from = 0, to = 0;  // indices of launches: `to` waits for `from`
  // It may begin when all blocks of `from` have ended or have said that it may, and waits for the rest itself.
  bool programmatic = false;
  bool operator==(const GraphEdge&) const = default;
};

// Whether edges to it may be programmatic. Whatever it waits for has then ended: a kernel that awaits its launch has
// not let others follow before, and one that does not starts behind whole edges.
bool may_begin_early(const KernelLaunch& launch);
// The edge between two launches. Those from and to a library's call are whole: nobody knows its kernels.
GraphEdge edge_between(const std::vector<KernelLaunch>& launches, int from, int to, bool programmatic = true);

class KernelGraph {
 public:
  // No edge may stand there twice.
  KernelGraph(const std::shared_ptr<const DeviceState>& device, const std::vector<KernelLaunch>& launches,
              const std::vector<GraphEdge>& edges);

  void launch(CUstream_st* stream) const;

 private:
  std::unique_ptr<CUgraphExec_st, Release> executable_;
};

}  // namespace burin
