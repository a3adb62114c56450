#include "runtime/launch_plan.h"

#include <algorithm>

#include "ir/error.h"
#include "ir/limits.h"

namespace burin {
namespace {

std::int64_t checked_tiles(const KernelRecord& record, int batch) {
  if (batch < 1 || batch > kMaxBatch) {
    fail(ErrorKind::usage, "batch {} of layer {} is not within 1..{}", batch, record.layer, kMaxBatch);
  }
  const LaunchGeometry& launch = record.launch;
  const std::int64_t blocks = grid_width(launch, batch);
  if (blocks > kMaxGridX) {
    fail(
        ErrorKind::unsupported,
        "batch {} of layer {} needs {} blocks ({} per {} images), more than a grid's {}; launch fewer images at a time",
        batch, record.layer, blocks, launch.tiles_per_image, launch.tile_images, kMaxGridX);
  }
  if (launch.slices > kMaxGridY) {
    fail(ErrorKind::unsupported, "layer {} is cut into {} slices, more than a grid's {}; compile it with fewer groups",
         record.layer, launch.slices, kMaxGridY);
  }
  if (blocks * launch.slices > kMaxGridBlocks) {
    fail(ErrorKind::unsupported,
         "batch {} of layer {} needs {} x {} blocks, together more than the {} that a kernel counts; launch fewer "
         "images "
         "at a time",
         batch, record.layer, blocks, launch.slices, kMaxGridBlocks);
  }
  return tile_count(launch, batch);
}

void check_pointer(const KernelRecord& record, const void* pointer, int alignment, const char* name) {
  if (pointer == nullptr) fail(ErrorKind::usage, "launch of layer {}: {} is a null pointer", record.layer, name);
  if (reinterpret_cast<std::uintptr_t>(pointer) % static_cast<std::uintptr_t>(alignment) != 0) {
    fail(ErrorKind::usage,
         "launch of layer {}: {} is not aligned to {} bytes, which kernel {} relies on: its address is {}; memory from "
         "cuMemAlloc or cudaMalloc is aligned",
         record.layer, name, alignment, record.symbol, fmt::ptr(pointer));
  }
}

void check_scratch(const KernelRecord& record, const char* name, const void* memory, std::int64_t given,
                   std::int64_t needed, int batch) {
  if (needed == 0) return;
  if (memory == nullptr) {
    fail(ErrorKind::usage,
         "launch of layer {} with batch {} needs a workspace with {} bytes of {}, and none was given; make one of "
         "workspace_size(batch)",
         record.layer, batch, needed, name);
  }
  if (given < needed) {
    fail(ErrorKind::usage, "launch of layer {} with batch {} needs {} bytes of {}, and the workspace has {}",
         record.layer, batch, needed, name, given);
  }
}

}  // namespace

LaunchGrid launch_grid(const KernelRecord& record, int batch) {
  checked_tiles(record, batch);
  return {static_cast<unsigned>(grid_width(record.launch, batch)), static_cast<unsigned>(record.launch.slices)};
}

WorkspaceSize launch_workspace(const KernelRecord& record, int batch) {
  const std::int64_t tiles = checked_tiles(record, batch);
  std::int64_t counters = 0;
  WorkspaceSize size;
  if (__builtin_mul_overflow(tiles, record.launch.counters_per_tile * std::int64_t{sizeof(std::uint32_t)}, &counters) ||
      __builtin_mul_overflow(tiles, record.launch.workspace_bytes_per_tile, &size.partial_bytes) ||
      __builtin_add_overflow(counters, kWorkspaceAlignment - 1, &counters)) {
    fail(ErrorKind::unsupported, "batch {} of layer {} needs more scratch memory than can be addressed", batch,
         record.layer);
  }
  size.counter_bytes = counters / kWorkspaceAlignment * kWorkspaceAlignment;
  return size;
}

WorkspaceSize merge(const WorkspaceSize& a, const WorkspaceSize& b) {
  return {std::max(a.counter_bytes, b.counter_bytes), std::max(a.partial_bytes, b.partial_bytes)};
}

void check_launch(const KernelRecord& record, const LaunchIo& io, const WorkspaceView& workspace,
                  const WorkspaceSize& needed) {
  check_pointer(record, io.input, record.launch.input_alignment, "input");
  check_pointer(record, io.output, record.launch.output_alignment, "output");
  if (record.shape.epilogue.residual) {
    check_pointer(record, io.residual, record.launch.output_alignment, "residual");
  } else if (io.residual != nullptr) {
    fail(ErrorKind::usage, "launch of layer {}: a residual was given, and the layer has none", record.layer);
  }
  const auto check_map = [&](const void* map, bool has_one, const char* name) {
    if (map == nullptr || has_one) return;
    fail(ErrorKind::usage,
         "launch of layer {}: an activity map of the {} was given, and kernel {} has none; compile it with "
         "--skip-dead-tiles",
         record.layer, name, record.symbol);
  };
  check_map(io.input_activity, record.launch.input_activity.has_value(), "input");
  check_map(io.output_activity, record.launch.output_activity.has_value(), "output");
  check_scratch(record, "counters", workspace.counters, workspace.counter_bytes, needed.counter_bytes, io.batch);
  check_scratch(record, "partial sums", workspace.partials, workspace.partial_bytes, needed.partial_bytes, io.batch);
}

}  // namespace burin
