// What a package says of a whole network: how it runs for each batch size it was compiled for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/network_plan.h"

namespace burin {

// An input or output of the network: plain NCHW float32, images one after the other.
struct NetworkArgument {
  std::string name;
  std::vector<std::int64_t> shape;  // of one image
  bool operator==(const NetworkArgument&) const = default;
};

// A kernel that a step could have: who would make it, and the time of one launch inside the network, by that provider's
// own model or as it was measured.
struct KernelOption {
  std::string provider;
  double us = 0;
  bool measured = false;
  bool operator==(const KernelOption&) const = default;
};
// "conv_dense 4.2 us, conv_baked 6.5 us"
std::string describe(const std::vector<KernelOption>& options);

// A network for one batch size. Fewer images can be run: every kernel takes the number of images as an argument.
struct NetworkProgram {
  NetworkPlan plan;
  std::vector<std::string> kernels;  // the symbol of each step's
  // Of each step, the kernels that were compared, the chosen one first. Empty: nobody has said. Nothing depends on it.
  std::vector<std::vector<KernelOption>> options;
  bool operator==(const NetworkProgram&) const = default;
};

struct NetworkRecord {
  std::vector<NetworkArgument> inputs, outputs;
  std::vector<NetworkProgram> programs;  // at least one, batch sizes ascending
  bool operator==(const NetworkRecord&) const = default;
};

}  // namespace burin
