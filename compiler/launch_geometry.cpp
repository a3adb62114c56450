#include "compiler/launch_geometry.h"

#include <algorithm>

namespace burin {
namespace {

// Whole words are read and written, also of halves.
int alignment_of(TensorLayout layout) { return channels_together(layout) * kFloatBytes; }

}  // namespace

LaunchGeometry launch_geometry(const KernelPlan& plan, const ConvShape& shape) {
  LaunchGeometry launch;
  launch.threads = plan.threads;
  launch.shared_bytes = plan.shared_bytes();
  launch.slices = static_cast<int>(plan.slices.size());
  launch.tile_images = plan.tile_images();
  launch.tiles_per_image = plan.tiles_per_image(shape);
  launch.cluster_tiles = plan.cluster.tiles;
  if (plan.reduction == Reduction::last_block) {
    launch.workspace_bytes_per_tile = static_cast<std::int64_t>(plan.slices.size()) * plan.group_capacity() *
                                      plan.sums_per_channel() * plan.threads * kFloatBytes;
    launch.counters_per_tile = static_cast<int>(plan.groups.size());
  }
  launch.input_element = launch.output_element = element_of(plan.precision);
  launch.input_layout = plan.input_layout;
  launch.output_layout = plan.output_layout;
  launch.output_image_words = plan.output_image_words;
  launch.residual_image_words = plan.residual_image_words;
  launch.input_activity = plan.skips;
  if (plan.marks) launch.output_activity = plan.output_map();
  launch.input_alignment = alignment_of(plan.input_layout);
  launch.output_alignment = alignment_of(plan.output_layout);
  if (plan.staging == Staging::bulk) launch.input_alignment = std::max(launch.input_alignment, kWideAccessBytes);
  return launch;
}

}  // namespace burin
