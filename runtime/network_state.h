// What a LoadedNetwork and its runs share, and what a NetworkRun owns.
#pragma once

#include <memory>
#include <vector>

#include "runtime/burin/device_memory.hpp"
#include "runtime/burin/network.hpp"
#include "runtime/kernel_graph.h"
#include "runtime/package_state.h"

namespace burin {

struct NetworkState {
  std::shared_ptr<PackageState> package;
  std::vector<const Program*> programs;  // of one name, batch sizes ascending
  std::shared_ptr<const Program> given;  // one that is not the package's

  // The arguments for so many images.
  std::vector<NetworkTensor> tensors(BufferHome home, int batch) const;
};

// A launch's step: which of the program that its part of the batch is run by.
struct BoundStep {
  const Program* program = nullptr;
  int part = 0, index = 0;
  const Step& step() const { return program->steps[static_cast<std::size_t>(index)]; }
};

struct NetworkRunState {
  std::shared_ptr<NetworkState> network;
  NetworkIo io;
  NetworkSchedule schedule;
  std::vector<int> first_images;  // of each part
  DeviceBuffer arena;
  Workspace scratch;
  std::vector<BoundStep> steps;
  std::vector<KernelLaunch> launches;  // of each step
  std::unique_ptr<KernelGraph> graph;  // goes first: it uses all others

  // Where a buffer of the program begins for the part's images.
  unsigned char* buffer_address(int part, const Program& program, int buffer) const;
};

// Throws Error(usage) for pointers that the network cannot use, Error(unsupported) for a batch that does not fit a grid
// or a graph.
std::shared_ptr<const NetworkRunState> bind_network(const std::shared_ptr<NetworkState>& network, const NetworkIo& io,
                                                    const NetworkOptions& options);

}  // namespace burin
