#include "compiler/launch_geometry.h"

namespace burin {

LaunchGeometry launch_geometry(const KernelPlan& plan, const ConvShape& shape) {
  LaunchGeometry launch;
  launch.threads = plan.threads;
  launch.shared_bytes = plan.shared_bytes();
  launch.slices = static_cast<int>(plan.slices.size());
  launch.tile_images = plan.tile.images;
  launch.tiles_per_image = plan.tiles_per_image(shape);
  if (plan.reduction == Reduction::last_block) {
    constexpr std::int64_t kWordBytes = 4;
    launch.workspace_bytes_per_tile =
        static_cast<std::int64_t>(plan.slices.size()) * plan.group_capacity() * plan.threads * kWordBytes;
    launch.counters_per_tile = static_cast<int>(plan.groups.size());
  }
  return launch;
}

}  // namespace burin
