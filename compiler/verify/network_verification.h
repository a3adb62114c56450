// Compares a package's whole network with its model: the outputs with the float64 run of the graph as the model has it,
// and each step with its operator (step_comparison.h).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "compiler/execute/network_executor.h"
#include "compiler/reference.h"
#include "compiler/verify/step_comparison.h"
#include "ir/network.h"

namespace burin {

struct NetworkVerifyOptions {
  std::optional<int> batch;  // nothing: each program at its own batch size
  std::uint64_t seed = 0;
  int images = 4;                    // of a batch that are compared: the first, the last, others at random
  bool steps = false;                // also where the outputs are right
  std::optional<std::string> layer;  // of the steps, only operators whose name matches; it asks for steps
};

struct OutputResult {
  std::string fault;  // beside the values: an element of an image that is not compared was not written
  bool passed = false;
  Comparison comparison;
};

// Of one program.
struct NetworkResult {
  const NetworkProgram* program = nullptr;
  int batch = 1;
  std::vector<int> images;  // that were compared, ascending
  std::string fault;        // what the executor found; empty: the comparisons speak
  std::vector<OutputResult> outputs;
  bool stepped = false;    // the steps were looked at
  std::string step_fault;  // of the run step by step as a whole
  std::vector<StepResult> steps;

  bool outputs_passed() const;
  bool passed() const;
  const StepResult* first_failed() const;  // null: none has
};

struct NetworkVerification {
  std::int64_t deepest_reduction = 0;
  // Steps that round to half precision, and what they round together: the same in all programs.
  int half_steps = 0;
  double half_rounding = 0;
  std::vector<NetworkResult> results;  // one for each program that was run
  bool passed() const;
};

// The model that the package was compiled from, with the package's image sizes and threshold. Throws Error(bad_input)
// where it is no model, or one with other inputs or outputs.
Network import_model(const std::string& path, const Manifest& manifest);

// What the random inputs of the network are: `input_std` is their standard deviation. They depend on the seed, the
// input's name and the batch size alone.
NetworkTensors random_inputs(const NetworkRecord& network, double input_std, int batch, std::uint64_t seed);

// `count` of `batch` images, ascending: the first, the last, and others at random.
std::vector<int> choose_images(int batch, int count, std::uint64_t seed);

// `done` of `all` steps were looked at, `what` the last of them. With `all` 0, `what` is what begins now.
using StepProgress = std::function<void(int done, int all, const std::string& what)>;

// `model`: as it was imported. Where an output is wrong, the steps are looked at too. Errors of kind verification
// become results; others are thrown. `progress` may be empty.
NetworkVerification verify_network(const Package& package, const Network& model, const NetworkVerifyOptions& options,
                                   NetworkExecutor& executor, const StepProgress& progress = {});

}  // namespace burin
