// Chooses a KernelPlan by searching plans with the cost model of ir/arch.h. Needs no GPU.
#pragma once

#include <string>
#include <vector>

#include "compiler/plan/constraints.h"
#include "ir/kernel_plan.h"
#include "ir/sparse_pattern.h"

namespace burin {

struct PlanRequest {
  int batch = 1;
  // The plan keeps the limits of all of them; the costs are those of the first.
  std::vector<std::string> archs = {"sm_90"};
  PlanConstraints constraints = {};  // the plan keeps them, or there is none: Error(usage)
};

// The time of one launch in microseconds, by the model, with its terms for whoever wants to know why. They add up to
// the total.
struct CostBreakdown {
  double issue_us = 0;      // multiply-adds, shared-memory loads, barriers
  double fetch_us = 0;      // waiting for code, beyond that
  double staging_us = 0;    // copying activations, beyond what arithmetic hides
  double reduction_us = 0;  // adding up splits
  double fixed_us = 0;      // launch, first load, drain
  double waves = 0;
  double total_us = 0;
};

CostBreakdown predict(const KernelPlan& plan, const ConvShape& shape, const SparsePattern& pattern,
                      const ArchSpec& arch);

// The best plan by predict(); it verifies. Throws Error(unsupported) that names layer, attribute, value and what helps.
KernelPlan make_plan(const ConvLayer& layer, const SparsePattern& pattern, const PlanRequest& request);

}  // namespace burin
