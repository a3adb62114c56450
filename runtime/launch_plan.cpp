#include "runtime/launch_plan.h"

#include <algorithm>

#include "ir/arena.h"
#include "ir/error.h"
#include "ir/limits.h"

namespace burin {
namespace {

std::int64_t checked_tiles(const Kernel& kernel, int batch) {
  if (batch < 1 || batch > kMaxBatch) {
    fail(ErrorKind::usage, "batch {} of {} is not within 1..{}", batch, kernel.owner(), kMaxBatch);
  }
  const LaunchGeometry& launch = kernel.form.launch;
  const std::int64_t blocks = grid_width(launch, batch);
  if (blocks > kMaxTiles) {
    fail(ErrorKind::unsupported,
         "batch {} of {} needs {} blocks ({} per {} images), more than a grid's {}; launch fewer images at a time",
         batch, kernel.owner(), blocks, launch.tiles_per_image, launch.tile_images, kMaxTiles);
  }
  return tile_count(launch, batch);
}

void check_pointer(const Kernel& kernel, const void* pointer, int alignment, const char* name) {
  if (pointer == nullptr) fail(ErrorKind::usage, "launch of {}: {} is a null pointer", kernel.owner(), name);
  if (reinterpret_cast<std::uintptr_t>(pointer) % static_cast<std::uintptr_t>(alignment) != 0) {
    fail(ErrorKind::usage,
         "launch of {}: {} is not aligned to {} bytes, which kernel {} relies on: its address is {}; memory from "
         "cuMemAlloc or cudaMalloc is aligned",
         kernel.owner(), name, alignment, kernel.symbol, fmt::ptr(pointer));
  }
}

void check_scratch(const Kernel& kernel, const char* name, const void* memory, std::int64_t given, std::int64_t needed,
                   int batch) {
  if (needed == 0) return;
  if (memory == nullptr) {
    fail(ErrorKind::usage,
         "launch of {} with batch {} needs a workspace with {} bytes of {}, and none was given; make one of "
         "workspace_size(batch)",
         kernel.owner(), batch, needed, name);
  }
  if (given < needed) {
    fail(ErrorKind::usage, "launch of {} with batch {} needs {} bytes of {}, and the workspace has {}", kernel.owner(),
         batch, needed, name, given);
  }
}

}  // namespace

LaunchGrid launch_grid(const Kernel& kernel, int batch) {
  checked_tiles(kernel, batch);
  return {static_cast<unsigned>(grid_width(kernel.form.launch, batch)),
          static_cast<unsigned>(kernel.form.launch.slices)};
}

WorkspaceSize launch_workspace(const Kernel& kernel, int batch) {
  const std::int64_t tiles = checked_tiles(kernel, batch);
  const std::int64_t partials = partial_bytes(kernel.form.launch, batch);
  if (partials > kMaxWorkspaceBytes) {
    fail(ErrorKind::unsupported, "batch {} of {} needs {} x {} bytes of scratch memory, more than {}", batch,
         kernel.owner(), tiles, kernel.form.launch.workspace_bytes_per_tile, kMaxWorkspaceBytes);
  }
  return {counter_bytes(kernel.form.launch, batch), partials};
}

WorkspaceSize merge(const WorkspaceSize& a, const WorkspaceSize& b) {
  return {std::max(a.counter_bytes, b.counter_bytes), std::max(a.partial_bytes, b.partial_bytes)};
}

void check_launch(const Kernel& kernel, const LaunchIo& io, const WorkspaceView& workspace,
                  const WorkspaceSize& needed) {
  check_pointer(kernel, io.input, kernel.form.input().alignment, "input");
  check_pointer(kernel, io.output, kernel.form.output().alignment, "output");
  if (const KernelTensor* residual = kernel.form.find(TensorRole::residual)) {
    check_pointer(kernel, io.residual, residual->alignment, "residual");
  } else if (io.residual != nullptr) {
    fail(ErrorKind::usage, "launch of {}: a residual was given, and the kernel has none", kernel.owner());
  }
  const auto check_map = [&](const void* map, bool has_one, const char* name) {
    if (map == nullptr || has_one) return;
    fail(ErrorKind::usage,
         "launch of {}: an activity map of the {} was given, and kernel {} has none; compile it with "
         "--skip-dead-tiles",
         kernel.owner(), name, kernel.symbol);
  };
  check_map(io.input_activity, kernel.form.has(TensorRole::input_map), "input");
  check_map(io.output_activity, kernel.form.has(TensorRole::output_map), "output");
  check_scratch(kernel, "counters", workspace.counters, workspace.counter_bytes, needed.counter_bytes, io.batch);
  check_scratch(kernel, "partial sums", workspace.partials, workspace.partial_bytes, needed.partial_bytes, io.batch);
}

NetworkSchedule make_schedule(const std::vector<const Program*>& programs, int batch) {
  if (batch < 1 || batch > kMaxBatch) fail(ErrorKind::usage, "batch {} is not within 1..{}", batch, kMaxBatch);
  NetworkSchedule schedule{batch, {}};
  for (int rest = batch; rest > 0;) {
    const Program& program = program_for(programs, rest);
    const int images = std::min(rest, program.most_images());
    schedule.parts.push_back({images, program.batch});
    rest -= images;
  }
  return schedule;
}

std::string NetworkSchedule::text() const {
  std::string text = fmt::format("batch {} runs as ", batch);
  for (std::size_t i = 0; i < parts.size();) {
    std::size_t next = i;
    while (next < parts.size() && parts[next] == parts[i]) ++next;
    if (i != 0) text += " + ";
    if (next - i > 1) text += fmt::format("{} x ", next - i);
    text += fmt::format("{}", parts[i].images);
    if (parts[i].images != parts[i].program_batch) text += fmt::format(" of {}", parts[i].program_batch);
    i = next;
  }
  return text;
}

ScratchLayout lay_out_scratch(const Program& program, const std::vector<WorkspaceSize>& sizes) {
  ScratchLayout layout;
  std::vector<std::int64_t> partials;
  for (const WorkspaceSize& size : sizes) {
    layout.steps.push_back({layout.total.counter_bytes, 0, size});
    layout.total.counter_bytes += size.counter_bytes;
    partials.push_back(size.partial_bytes);
  }
  const ArenaLayout arena = lay_out_partials(program, partials);
  for (std::size_t i = 0; i < sizes.size(); ++i) layout.steps[i].partials = arena.offsets[i];
  layout.total.partial_bytes = arena.bytes;
  return layout;
}

}  // namespace burin
