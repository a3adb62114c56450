// Whole networks on a GPU: bound to memory of their own, and timed.
#pragma once

#include <functional>
#include <span>
#include <vector>

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

// What a launch of each package's network takes among others that follow at once, in microseconds: medians. The
// networks take turns, so that whatever drifts does so for all of them.
std::vector<double> time_networks_in_turns(const Device& device, std::span<const Package* const> packages, int batch);

}  // namespace burin
