// An operator's kernels on the host executor against the float64 reference.
#pragma once

#include <string>
#include <vector>

#include "compiler/operators/plan_operator.h"
#include "ir/network.h"
#include "test/operators/operator_cases.h"

namespace burin_test {

struct OperatorCheck {
  std::vector<int> batches = {1, 3};
  int tuned_batch = 1;
  // Words before and behind each tensor within an image of its buffer: the operator reads and writes slices.
  int before = 0, behind = 0;
  double tolerance = 2e-6;  // of an output, times 1 + its magnitude
};

// Plans an operator of the network, in every way that there is, runs it once for each batch size, its output and all
// that surrounds its tensors poisoned with NaN, and compares. Empty when every output is within the tolerance and what
// surrounds the output is as it was; else what went wrong, with the plan.
std::string check_operator(const burin::Network& network, const burin::Operator& op, const OperatorCheck& check = {});
// These kernels of it, planned for the places that `check` says.
std::string check_kernels(const burin::Network& network, const burin::Operator& op,
                          const std::vector<burin::PlannedOperator>& kernels, const OperatorCheck& check);
// Of its last operator.
std::string check_operator(const burin::Network& network, const OperatorCheck& check = {});

// With all combinations of batch sizes that plans are tuned for and of slices, aligned and not.
std::string check_everywhere(const OperatorCase& edge);

}  // namespace burin_test
