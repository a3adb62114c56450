// Compares each step of a network with its operator in float64, on the tensors that the package itself computed before
// it: so each step's own error is seen.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/host/host_programs.h"
#include "compiler/reference.h"
#include "ir/network.h"
#include "ir/package/manifest_index.h"

namespace burin {

struct OutputResult {
  // What is wrong beside values: an element that was not written, an input of the step that something else has written
  // over since. Empty: the comparison speaks.
  std::string fault;
  bool passed = false;
  Comparison comparison;
};

struct StepResult : OutputResult {
  int step = 0;
  int longest_reduction = 0;
  std::vector<std::int64_t> shape;  // of one image of what the step writes; comparison.worst_index is into it
};

// How the kernel of each step of the program computes: all but longest_reduction, which the weights say.
std::vector<Arithmetic> arithmetic_of(const ManifestIndex& kernels, const Program& program);
// What a step rounds, to a half type or to TF32, as a share of its terms.
double rounding_share(const Arithmetic& arithmetic);
// What all steps round together: the root of the sum of their squares.
double rounding_share(const std::vector<Arithmetic>& steps);

// Compares the steps of one run of a program.
class StepComparison {
 public:
  // `network`: the graph that was compiled, which has the steps' operators under the same names. `program` is one of
  // the package's. `images` of the `batch` that runs are compared, ascending. All but these must outlive this. Throws
  // Error(bad_input) where the graph lacks an operator, or has one with other tensors.
  StepComparison(const Network& network, const ManifestIndex& kernels, const Program& program, int batch,
                 std::vector<int> images);

  // After each step, in their order. `compared`: false leaves a step out of the results, but for what it writes.
  void see(const StepValues& values, bool compared = true);

  const std::vector<StepResult>& results() const { return results_; }

 private:
  std::string changed_input(const Step& step, const std::vector<std::vector<float>>& reads);
  void remember(const Place& place, const std::vector<float>& values);
  StepResult compare_step(const Step& step, const std::vector<std::vector<float>>& reads,
                          const std::vector<float>& output) const;

  const Network& network_;
  const Program& program_;
  int batch_;
  std::vector<int> images_;
  std::vector<Arithmetic> arithmetic_;       // of each step
  std::vector<const Operator*> operators_;   // of each step; null: a copy
  std::vector<std::vector<float>> written_;  // of each buffer, what steps have written there; empty outside its life
  std::vector<StepResult> results_;
};

// "image 3, channel 17, row 0, col 5" for images, "image 3, feature 17" for flat tensors, "image 3, index 1,2" for
// others. `images`: which ones the tensor has.
std::string describe_index(const std::vector<std::int64_t>& shape, const std::vector<int>& images, std::int64_t index);

// The fault, or the worst element: where, what it is, what it should be.
std::string describe_worst(const OutputResult& result, const std::vector<std::int64_t>& shape,
                           const std::vector<int>& images);

}  // namespace burin
