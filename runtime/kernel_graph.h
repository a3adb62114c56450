// A CUDA graph of kernels that is put together node by node, not captured.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "runtime/burin/runtime.hpp"
#include "runtime/loaded_code.h"

namespace burin {

// A launch of one kernel, with everything but the stream.
struct KernelLaunch {
  std::shared_ptr<const LoadedCode> code;
  LaunchGrid grid;
  int threads = 0, shared_bytes = 0;
  std::array<void*, 5> pointers{};  // the kernel's first parameters, `pointer_count` of them; then comes the batch
  std::size_t pointer_count = 0;
  std::int32_t batch = 0;
  std::string what;  // for messages: "step 3, kernel pool1_pool of operator pool1"

  // Addresses of the parameters, valid as long as this lives: the driver takes no const, and changes nothing.
  std::array<void*, 8> parameters() const;
  void enqueue(CUstream_st* stream) const;
};

struct GraphEdge {
  int from = 0, to = 0;  // indices of launches: `to` waits for `from`
  // It may begin when all blocks of `from` have ended or have said that it may, and waits for the rest itself.
  bool programmatic = false;
  bool operator==(const GraphEdge&) const = default;
};

class KernelGraph {
 public:
  // No edge may stand there twice.
  KernelGraph(const std::shared_ptr<const DeviceState>& device, const std::vector<KernelLaunch>& launches,
              const std::vector<GraphEdge>& edges);
  ~KernelGraph();
  KernelGraph(const KernelGraph&) = delete;
  KernelGraph& operator=(const KernelGraph&) = delete;

  void launch(CUstream_st* stream) const;

 private:
  explicit KernelGraph(const std::shared_ptr<const DeviceState>& device) : device_(device) {}

  std::shared_ptr<const DeviceState> device_;
  CUgraphExec executable_ = nullptr;
};

}  // namespace burin
