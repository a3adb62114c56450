// What each slice of a plan adds up, counted anew from the pattern.
#pragma once

#include "compiler/providers/conv_baked/plan/work.h"

namespace burin_test {

inline std::vector<burin::SliceWork> work_of_slices(const burin::BakedPlan& plan, const burin::SparsePattern& pattern) {
  const std::vector<int> group_of = group_of_outputs(plan.groups, pattern.out_channels);
  const int together = channels_together(plan.input_layout);
  return slice_work(plan, count_work(pattern, group_of, plan.groups.size(), together), pattern.in_channels);
}

}  // namespace burin_test
