#include "compiler/providers/lane_groups.h"

#include <algorithm>

#include "ir/kernel.h"
#include "ir/saturate.h"

namespace burin {
namespace {

constexpr std::size_t kGroupAxes = 3;  // of groups and of values: lane_groups.h of the templates

// Threads that have a group. One, where neighbours along the last axis are neighbouring groups, so that a warp reads
// whole lines: unless there are too few groups for the GPU and many values in each. Else a warp, or a block where there
// is much to read.
int choose_lanes(const Task& task, const LaneGroups& groups) {
  constexpr std::int64_t kLineGroups = 8, kFewValues = 32, kWarpValues = 2048, kBlockValues = 16384;
  const bool side_by_side = !groups.groups.empty() && groups.groups.back().steps[0] == 1;
  const bool lines = side_by_side && groups.groups.back().extent >= kLineGroups;
  const ArchSpec& arch = arch_of(task);
  const std::int64_t full = std::int64_t{arch.multiprocessors} * arch.max_threads_per_multiprocessor / 4;
  if (groups.value_count <= 4) return 1;
  if (lines && (groups.group_count * task.batch >= full || groups.value_count <= kFewValues)) return 1;
  if (groups.value_count <= kWarpValues) return kWarpSize;
  return groups.value_count <= kBlockValues ? kBlockThreads : kMaxThreadsPerBlock;
}

}  // namespace

bool LaneGroups::fit() const { return groups.size() <= kGroupAxes && values.size() <= kGroupAxes; }

LaneGroups lane_groups(const std::vector<std::int64_t>& shape, const std::vector<int>& axes,
                       const std::vector<std::int64_t>& numbers) {
  const std::vector<std::int64_t> steps = steps_in(shape);
  const std::vector<std::int64_t> of_numbers =
      numbers.empty() ? std::vector<std::int64_t>(shape.size(), 0) : steps_in(numbers);
  LaneGroups result;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    const bool along = std::ranges::find(axes, static_cast<int>(axis)) != axes.end();
    (along ? result.values : result.groups).push_back({shape[axis], {steps[axis], of_numbers[axis]}});
    (along ? result.value_count : result.group_count) *= shape[axis];
  }
  result.groups = merged(result.groups);
  result.values = merged(result.values);
  return result;
}

void set_lane_groups(TemplatePlan& plan, const Task& task, const LaneGroups& groups, int exchanges,
                     const std::vector<std::string>& tensors) {
  const int lanes = choose_lanes(task, groups);
  set_axes(plan, "group", kGroupAxes, groups.groups, tensors);
  set_axes(plan, "value", kGroupAxes, groups.values, tensors);
  set_integers(plan, {{"lanes", lanes}, {"groups", groups.group_count}, {"count", groups.value_count}});
  set_narrow(plan);
  if (lanes == 1) return set_items(plan, groups.group_count);
  constexpr int kWarpsOfBlock = 4;  // few, so that the groups of one image reach many multiprocessors
  LaunchGeometry& launch = plan.launch();
  launch.threads = lanes == kWarpSize ? kWarpsOfBlock * kWarpSize : lanes;
  launch.tiles_per_image = ceil_div(groups.group_count, launch.threads / lanes);
  constexpr int kExchangeBytes = kMaxThreadsPerBlock / kWarpSize * kWordBytes;
  launch.shared_bytes = lanes == kWarpSize ? 0 : kSharedReserveBytes + exchanges * kExchangeBytes;
}

}  // namespace burin
