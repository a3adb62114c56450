// What providers make of an operator, on the host executor against the float64 reference.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "compiler/providers/provider.h"
#include "compiler/synthetic_zeros.h"
#include "compiler/task.h"
#include "ir/network.h"
#include "ir/template_plan.h"
#include "test/providers/provider_cases.h"

namespace burin_test {

struct ProviderCheck {
  std::vector<int> batches = {1, 3};
  int tuned_batch = 1;
  // Words before and behind each tensor within an image of its buffer: the kernel reads and writes slices.
  int before = 0, behind = 0;
  double tolerance = 2e-6;  // of an output, times 1 + its magnitude
  std::string arch = "sm_90";
  burin::ElementType linear_storage = burin::ElementType::f32;
  burin::FactorType factors = burin::FactorType::f32;  // which its inputs are, too
  // The first input has a share of zeros, and values that are put in place of the first ones.
  burin::SyntheticZeros zeros = {};
  std::vector<float> special = {};
};

// The operator as a task, with its tensors where `check` says. Both must outlive it.
burin::Task task_of(const burin::Network& network, const burin::Operator& op, const ProviderCheck& check);

// One candidate of every provider that can do it but the baked one, which has tests of its own (test/codegen).
std::vector<burin::Candidate> candidates_of(const burin::Task& task);
// The same of the last operator of a network, by the providers' names.
std::set<std::string> providers_of(const burin::Network& network, const ProviderCheck& check = {});
// That of one provider, which must have one.
burin::Candidate candidate_of(const burin::Task& task, const std::string& provider);

// The plan of its candidate, for a template, of the last operator of a network.
burin::TemplatePlan plan_of(const burin::Network& network, const std::string& provider,
                            const ProviderCheck& check = {});

// Makes the candidate, runs it once for each batch size, its output and all that surrounds its tensors poisoned with
// NaN, and compares. Empty when every output is within the tolerance and what surrounds the output is as it was; else
// what went wrong, with the plan.
std::string check_candidate(const burin::Network& network, const burin::Operator& op, const burin::Candidate& candidate,
                            const ProviderCheck& check);
// All candidates, at least one; of fully connected layers whose weights FP16 can hold with such weights too.
std::string check_operator(const burin::Network& network, const burin::Operator& op, const ProviderCheck& check = {});
// Checks its last operator.
std::string check_operator(const burin::Network& network, const ProviderCheck& check = {});

// Slices of larger tensors begin where 16-byte accesses may, or anywhere.
enum class SlicesBegin { aligned, anywhere };
// The operator of a case is checked on tensors of its own; and planned for more images, on slices.
std::string check_whole(const OperatorCase& edge);
std::string check_slices(const OperatorCase& edge, SlicesBegin begin);
// All three.
std::string check_everywhere(const OperatorCase& edge);

}  // namespace burin_test
