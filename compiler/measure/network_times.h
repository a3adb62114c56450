// Whole networks on a GPU: bound to memory of their own, and timed.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "compiler/tune/network_timer.h"
#include "ir/package/package.h"
#include "runtime/burin/device_memory.hpp"
#include "runtime/burin/network.hpp"

namespace burin {

// A network that is bound to memory of its own.
struct BoundNetwork {
  std::vector<DeviceBuffer> tensors;  // inputs and outputs
  NetworkRun run;
};

// So many values of an input, by its index.
using InputValues = std::function<std::vector<float>(std::size_t input, std::int64_t count)>;

// `values`: what the inputs hold; empty: random values.
BoundNetwork bind_own_memory(const Device& device, const LoadedNetwork& network, int batch,
                             const NetworkOptions& options = {}, const InputValues& values = {});

// A NetworkTimer. Packages of the last call stay loaded, and values of inputs are made once.
class GpuNetworkTimer {
 public:
  explicit GpuNetworkTimer(const Device& device) : device_(device) {}
  std::vector<double> operator()(std::span<const TimedProgram> programs, int turns);

 private:
  Device device_;
  std::map<std::shared_ptr<const Package>, LoadedPackage> loaded_;
  std::map<std::int64_t, std::vector<float>> values_;  // by how many there are
};

}  // namespace burin
