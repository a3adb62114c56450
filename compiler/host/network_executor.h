// Runs a whole network of a package on the host executor, step by step: each kernel through HostKernel, which
// checks every access, on an arena that is poisoned before.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "ir/package/package.h"

namespace burin {

// What a step found and what it made: float32, dense NCHW, images one after the other.
struct StepValues {
  int step = 0;                           // index into the plan's
  std::vector<std::vector<float>> reads;  // as they were right before it, in the order of Step::reads
  std::vector<float> output;              // right after it
};
// Called after each step, in the order of the steps; the arena's memory is used again by later ones.
using StepVisitor = std::function<void(const StepValues&)>;

class HostNetwork {
 public:
  // `package`, which must have a network, must outlive this. `jobs`: kernels that are compiled for this CPU at the same
  // time; 0: as many as there are processors.
  explicit HostNetwork(const Package& package, int jobs = 0);
  ~HostNetwork();
  HostNetwork(HostNetwork&&) noexcept;
  HostNetwork& operator=(HostNetwork&&) noexcept;

  // The outputs in the order of the network's, where what no step wrote is NaN. `inputs` in their order, of `batch`
  // images each; at most as many as the program is for. Kernels are compiled when they are first needed, and kept.
  // Throws Error(verification) with the first fault of a step, and Error(unsupported) for a package without bitcode.
  std::vector<std::vector<float>> run(const NetworkProgram& program, int batch,
                                      const std::vector<std::span<const float>>& inputs, const StepVisitor& visit = {});

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace burin
