// Groups of values of an image, those along some of its axes: how providers describe them to kernels that are made with
// templates/kernels/lane_groups.h.
#pragma once

#include "compiler/providers/template_provider.h"
#include "compiler/providers/walked_axes.h"

namespace burin {

struct LaneGroups {
  std::vector<WalkedAxis> groups, values;  // the first tensor is the input, the second one of numbers, if any
  std::int64_t group_count = 1, value_count = 1;
  // Whether a template knows so many axes.
  bool fit() const;
};

// The groups along `axes` of an image of the shape. `numbers`: the shape of a tensor that repeats to it; empty: none.
LaneGroups lane_groups(const std::vector<std::int64_t>& shape, const std::vector<int>& axes,
                       const std::vector<std::int64_t>& numbers = {});

// Sets the constants of lane_groups.def, threads, blocks and shared memory for so many exchanges between warps; and how
// far steps move in each tensor, by the names of their constants.
void set_lane_groups(TemplatePlan& plan, const Task& task, const LaneGroups& groups, int exchanges,
                     const std::vector<std::string>& tensors = {"step"});

}  // namespace burin
