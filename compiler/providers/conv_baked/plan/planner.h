// Chooses a BakedPlan by searching plans with the cost model of ir/arch.h. Needs no GPU.
#pragma once

#include <string>
#include <vector>

#include "compiler/providers/conv_baked/plan/constraints.h"
#include "ir/baked_plan.h"
#include "ir/sparse_pattern.h"

namespace burin {

struct PlanRequest {
  int batch = 1;
  // The plan keeps the limits of all of them; the costs are those of the first.
  std::vector<std::string> archs = {"sm_90"};
  PlanConstraints constraints = {};  // the plan keeps them, or there is none: Error(usage)
  // With the half precisions both are n2chw, whatever stands here.
  TensorLayout input_layout = TensorLayout::nchw, output_layout = TensorLayout::nchw;
  Precision precision = Precision::fp32;
  // The kernel looks its input's dead channels up in an activity map, with default_cell() for a cell, and skips them,
  // and writes the map of its output.
  bool skip_dead_tiles = false;
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

CostBreakdown predict(const BakedPlan& plan, const ConvShape& shape, const SparsePattern& pattern,
                      const ArchSpec& arch);

// The best plan by predict(); it verifies. Throws Error(unsupported) that names layer, attribute, value and what helps.
BakedPlan make_plan(const ConvLayer& layer, const SparsePattern& pattern, const PlanRequest& request);

// Up to `count` plans that are worth measuring, at least one: make_plan()'s first, then others that are unlike it and
// each other (unlike_plans.h) and that predict() does not rule out, best first. All verify, and no two are equal.
// Throws what make_plan() throws.
std::vector<BakedPlan> make_plans(const ConvLayer& layer, const SparsePattern& pattern, const PlanRequest& request,
                                  std::size_t count);

}  // namespace burin
