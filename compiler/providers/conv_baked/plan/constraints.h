// PlanConstraints: choices that a person, or a tuner, has already made. The planner searches what is left.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "ir/baked_plan.h"

namespace burin {

struct PlanConstraints {
  std::optional<Staging> staging;
  std::optional<PixelTile> tile;
  std::optional<int> groups;  // how many groups of output channels
  std::optional<int> splits;
  std::optional<Reduction> reduction;   // of plans with several splits
  std::optional<ClusterShape> cluster;  // with several splits in it, all of them and reduction cluster
  std::optional<int> stage_channels;    // rounded up to whole rows of the shared layout
  std::optional<int> buffers;
  std::optional<int> barrier_every;
  std::optional<int> load_ahead;
  std::optional<int> load_together;  // of direct loads
  std::optional<int> promote_every;  // of Precision::fp16x2

  bool operator==(const PlanConstraints&) const = default;
  bool any() const { return *this != PlanConstraints{}; }
};

// "staging=shared,tile=4x14x14,groups=16,splits=2,reduction=cluster,cluster=2x2,stage=8,buffers=3,barrier=512,
// ahead=8,together=1,promote=32", any of them. Throws Error(usage).
PlanConstraints parse_plan_constraints(std::string_view text);
std::string print(const PlanConstraints& constraints);

// What `plan` chose, as far as constraints can say it: planning with them gives it again, or one that differs in
// details.
PlanConstraints constraints_of(const BakedPlan& plan);

}  // namespace burin
