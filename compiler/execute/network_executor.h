// Where a package's whole network runs: a GPU through the runtime, or the host executor.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "compiler/execute/layer_executor.h"
#include "compiler/host/network_executor.h"
#include "ir/package/package.h"

namespace burin {

// One tensor for each of the network's inputs or outputs: float32, dense NCHW, images one after the other.
using NetworkTensors = std::vector<std::vector<float>>;

class NetworkExecutor {
 public:
  virtual ~NetworkExecutor() = default;

  // What it runs on, for people: "host", "cuda:0 (NVIDIA H200, sm_90)".
  virtual std::string name() const = 0;

  // The outputs for `batch` images, at most as many as the program is for; what no step wrote is NaN. With a visitor
  // the steps run one after the other, and it sees each; without one they run as in an application. Throws
  // Error(verification) for faults of a kernel that the executor detects.
  virtual NetworkTensors run(const NetworkProgram& program, int batch, const NetworkTensors& inputs,
                             const StepVisitor& visit = {}) = 0;
};

// `package`, which must have a network, must outlive the executor. `jobs`: as of HostNetwork.
std::unique_ptr<NetworkExecutor> make_network_executor(const DeviceChoice& choice, const Package& package,
                                                       int jobs = 0);

// The smallest program that is for so many images, else the largest.
const NetworkProgram& program_for(const NetworkRecord& network, int batch);

// Any number of images, by the programs that the runtime would choose, one after the other.
NetworkTensors run_network(NetworkExecutor& executor, const NetworkRecord& network, int batch,
                           const NetworkTensors& inputs);

std::int64_t elements(const NetworkArgument& argument);  // of one image

// `count` images of each tensor, from `first` on; and chosen ones.
NetworkTensors slice_images(const NetworkTensors& tensors, int batch, int first, int count);
std::vector<float> pick_images(std::span<const float> tensor, int batch, const std::vector<int>& images);

}  // namespace burin
