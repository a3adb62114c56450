// Compares what a package's programs compute with the float64 reference: the outputs with the float64 run of the graph
// as the model has it, and each step with its operator (step_comparison.h).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "compiler/execute/executor.h"
#include "compiler/reference.h"
#include "compiler/synthetic_zeros.h"
#include "compiler/verify/code_comparison.h"
#include "compiler/verify/step_comparison.h"
#include "ir/network.h"

namespace burin {

struct VerifyOptions {
  std::optional<int> batch;  // nothing: each program at its own batch size
  std::uint64_t seed = 0;
  // How many images of a batch are compared: the first, the last, others at random. Nothing: all of a layer, and
  // kComparedImages of a network.
  std::optional<int> images;
  bool steps = false;                        // of networks: also where the outputs are right
  std::optional<std::string> layer;          // only layers, and of a network's steps operators, whose name matches
  std::optional<SyntheticZeros> zeros = {};  // among the values of random inputs
  double non_finite = 0;                     // the share of values of a layer's random inputs that are NaN or infinite
  int jobs = 0;                              // programs of layers at once, on the host; 0: one for each processor
  bool code = false;                         // the package's code is compared, too
};
inline constexpr int kComparedImages = 4;

// What came of one program.
struct VerifiedProgram {
  const Program* program = nullptr;
  int batch = 1;
  std::vector<int> images;  // that were compared, ascending
  std::string fault = {};   // what the executor found; empty: the comparisons speak
  // In the order of the program's outputs. A layer's tolerance is that of its step.
  std::vector<OutputResult> outputs = {};
  bool stepped = false;         // the steps were looked at
  std::string step_fault = {};  // of the run step by step as a whole
  std::vector<StepResult> steps = {};

  bool outputs_passed() const;
  bool passed() const;
  const StepResult* first_failed() const;  // null: none has
};

struct Verification {
  // The three that follow are said of a network alone.
  std::int64_t deepest_reduction = 0;
  // Steps that round, to a half type or to TF32, and what they round together: the same in all programs.
  int rounding_steps = 0;
  double rounding_share = 0;
  std::vector<VerifiedProgram> results;  // one for each program that was run
  std::vector<std::string> missing;      // layers of the reference that the package lacks
  std::optional<CodeComparison> code;    // nothing: it was not asked for
  bool passed() const;
};

// What the package's programs should compute, from the model or the weights that it was compiled from, with the
// package's threshold and sizes of images. Of layers, one with one is compared without regard to names, those that
// `layer` does not match are left out, and those that the package lacks come last. Throws Error(bad_input) where the
// file is another one: no model, or one with other inputs or outputs; without a layer, or with weights of another
// shape.
// `operators`: those of a model that a user gives, made and not compiled yet.
Network import_reference(const std::string& path, const Manifest& manifest, const std::optional<std::string>& geometry,
                         const std::optional<std::string>& layer, std::shared_ptr<FunctionSource> operators = nullptr);
// The same of what has been imported already.
Network reference_of(Network imported, const Manifest& manifest, const std::optional<std::string>& layer);

// Random inputs of the program; `input_std` is their standard deviation. They depend on the seed, the input's name and
// the batch size alone, and are rounded to the input's element type; `zeros` are of images of channels, rows and
// columns. Half of a tensor that has an activity map is dead. `non_finite`: the share of values that are NaN or
// infinite, at least one of each input unless that is 0.
Tensors random_inputs(const Program& program, double input_std, int batch, std::uint64_t seed,
                      const std::optional<SyntheticZeros>& zeros = {}, double non_finite = 0);

// `count` of `batch` images, ascending: the first, the last, and others at random.
std::vector<int> choose_images(int batch, int count, std::uint64_t seed);

// `done` of `all` steps, or programs of layers, were looked at, `what` the last of them. With `all` 0, `what` is what
// begins now. One call at a time.
using VerifyProgress = std::function<void(int done, int all, const std::string& what)>;

// `reference`: of import_reference(). Where an output of a network is wrong, the steps are looked at too. Errors of
// kind verification become results; others are thrown. `progress` may be empty.
Verification verify_programs(const Package& package, const Network& reference, const VerifyOptions& options,
                             Executor& executor, const VerifyProgress& progress = {});

// The tolerance of an element as a formula, for people.
std::string tolerance_text(Precision precision);

// "0.071": an error as a share of its tolerance.
std::string error_ratio_text(double ratio);

}  // namespace burin
