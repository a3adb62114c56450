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
  bool aligned_input = true;  // its images begin at multiples of 16 bytes, which bulk copies need
  // The kernel looks its input's dead channels up in an activity map, with default_cell() for a cell, and skips them,
  // and writes the map of its output.
  bool skip_dead_tiles = false;
};

// The best plan by launch_cost() (cost_model.h); it verifies. Throws Error(unsupported) that names layer, attribute,
// value and what helps.
BakedPlan make_plan(const ConvLayer& layer, const SparsePattern& pattern, const PlanRequest& request);

// Up to `count` plans that are worth measuring, at least one: make_plan()'s first, then others that are unlike it and
// each other (unlike_plans.h) and that the model does not rule out, best first. All verify, and no two are equal.
// Throws what make_plan() throws.
std::vector<BakedPlan> make_plans(const ConvLayer& layer, const SparsePattern& pattern, const PlanRequest& request,
                                  std::size_t count);

}  // namespace burin
