// What a package says of a whole network: how it runs for each batch size it was compiled for, and the kernels whose
// weights are data: of the operators beside its convolutions, and of convolutions for which they are faster than code
// that the weights are baked into (KernelRecords, ir/package/manifest.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/network_plan.h"
#include "ir/operator_plan.h"
#include "ir/package/kernel_binary.h"

namespace burin {

// The kernel of an operator, with its weights as data. It serves every batch size. Its parameters are, in this order:
//   const float* input, float* output, const float* second input, const uint32_t* weights, int32_t batch
// The first three are whole buffers: the plan's offsets are part of the code. What it does not have is null.
struct OperatorRecord {
  std::string symbol;
  std::string op;    // the operator's name; of a copy, that of its tensor
  std::string kind;  // kind_name(), or kCopyStep
  OperatorPlan plan;
  int input = 0, second = -1;  // which of a step's reads the kernel's inputs are; -1: none
  std::string weights;         // path in the package of plan.weight_words words, little-endian; empty: none
  std::string source_hash;     // of everything the code was made from
  std::vector<KernelBinary> binaries;
  bool operator==(const OperatorRecord&) const = default;
};

// An input or output of the network: plain NCHW float32, images one after the other.
struct NetworkArgument {
  std::string name;
  std::vector<std::int64_t> shape;  // of one image
  bool operator==(const NetworkArgument&) const = default;
};

// A kernel that a step could have: its template, and the time of one launch by that template's own model, or as it was
// measured.
struct KernelOption {
  std::string template_name;
  double predicted_us = 0;
  bool operator==(const KernelOption&) const = default;
};
// "conv_dense 4.2 us, conv_baked 6.5 us"
std::string describe(const std::vector<KernelOption>& options);

// A network for one batch size. Fewer images can be run: every kernel takes the number of images as an argument.
struct NetworkProgram {
  NetworkPlan plan;
  std::vector<std::string> kernels;  // of each step, the symbol of a KernelRecord or an OperatorRecord
  // Of each step, the kernels that were compared, the chosen one first; none where there was no choice. Empty: no step
  // had one. Nothing depends on it.
  std::vector<std::vector<KernelOption>> options;
  bool operator==(const NetworkProgram&) const = default;
};

struct NetworkRecord {
  std::vector<NetworkArgument> inputs, outputs;
  std::vector<NetworkProgram> programs;  // at least one, batch sizes ascending
  bool operator==(const NetworkRecord&) const = default;
};

}  // namespace burin
