// Compares what a package's kernels compute with the float64 reference.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compiler/execute/layer_executor.h"
#include "compiler/kernel_arithmetic.h"
#include "compiler/reference.h"
#include "ir/network.h"

namespace burin {

// One kernel of the package and the layer of the weights file that it should compute.
struct VerificationTask {
  const Kernel* kernel = nullptr;
  ConvLayer layer;  // the kernel's shape with the file's weights
  int batch = 1;
};

struct VerificationResult {
  bool passed = false;
  std::string fault;  // what the executor found; empty when the kernel ran and only the comparison speaks
  Comparison comparison;
  Arithmetic arithmetic;  // the tolerance follows from it
};

// Of a random tensor: FNV-1a of its name, batch size and number, mixed with the seed; the same on every machine.
std::uint64_t seed_for(std::uint64_t seed, const std::string& name, int batch, int tensor);

// The tolerance of an element as a formula, for people.
std::string tolerance_text(Precision precision);

// Pairs the kernels whose layer matches `layer_glob` with the network's layers of the same names (one with one: without
// regard to names). Throws Error(bad_input) when a layer is absent or its weights are of another shape.
std::vector<VerificationTask> pair_with_weights(const Manifest& manifest, const Network& network,
                                                const std::optional<std::string>& layer_glob, std::optional<int> batch);

// The random input of a kernel depends on the seed, the layer's name and the batch size alone, so that one row of a
// long table can be repeated by itself. It is rounded to the kernel's element type before the reference sees it, the
// weights are not: the error is the kernel's. The output is filled with NaN before. A kernel that skips dead channels
// gets an input half of which is dead, with its activity map; a map that it writes must agree with its output. Errors
// of kind verification become a result; others are thrown.
VerificationResult verify_kernel(const VerificationTask& task, std::uint64_t seed, Executor& executor);

// "0.071": an error as a share of its tolerance.
std::string error_ratio_text(double ratio);

// The executor's fault, or the worst element: where, what it is, what it should be.
std::string describe_worst(const VerificationTask& task, const VerificationResult& result);

}  // namespace burin
