#include <array>

#include "ir/error.h"
#include "runtime/burin/runtime.hpp"
#include "runtime/elements.h"
#include "runtime/launch_plan.h"
#include "runtime/loaded_code.h"

namespace burin {
const std::string& Kernel::layer() const { return record().layer; }
const std::string& Kernel::symbol() const { return record().symbol; }
const KernelRecord& Kernel::record() const { return *loaded_->record; }
const ConvShape& Kernel::shape() const { return record().shape; }
bool Kernel::needs_residual() const { return shape().epilogue.residual; }
int Kernel::planned_batch() const { return record().planned_batch; }
LoadedFrom Kernel::loaded_from() const { return loaded_->from; }
const std::string& Kernel::loaded_arch() const { return loaded_->arch; }
const std::string& Kernel::load_log() const { return loaded_->log; }
KernelAttributes Kernel::attributes() const { return loaded_->attributes; }

ImageShape Kernel::input_shape() const {
  const LaunchGeometry& launch = record().launch;
  return {.channels = shape().in_channels,
          .height = shape().in_h,
          .width = shape().in_w,
          .channels_together = channels_together(launch.input_layout),
          .alignment = launch.input_alignment,
          .images_together = images_together(launch.input_layout),
          .element = public_element(launch.input_element)};
}

ImageShape Kernel::output_shape() const {
  const LaunchGeometry& launch = record().launch;
  return {.channels = shape().out_channels,
          .height = shape().out_h(),
          .width = shape().out_w(),
          .channels_together = channels_together(launch.output_layout),
          .alignment = launch.output_alignment,
          .images_together = images_together(launch.output_layout),
          .element = public_element(launch.output_element),
          .image_pitch = launch.output_image_words};
}

namespace {

std::optional<ActivityShape> activity_shape(const std::optional<ActivityMap>& map, int channels, int rows, int cols) {
  if (!map) return std::nullopt;
  return ActivityShape{map->images, map->rows, map->cols, channels, rows, cols};
}

}  // namespace

std::optional<ActivityShape> Kernel::input_activity() const {
  return activity_shape(record().launch.input_activity, shape().in_channels, shape().in_h, shape().in_w);
}

std::optional<ActivityShape> Kernel::output_activity() const {
  return activity_shape(record().launch.output_activity, shape().out_channels, shape().out_h(), shape().out_w());
}

LaunchGrid Kernel::grid(int batch) const { return launch_grid(record(), batch); }
WorkspaceSize Kernel::workspace_size(int batch) const { return launch_workspace(record(), batch); }

void Kernel::launch(CUstream_st* stream, const LaunchIo& io, const WorkspaceView& workspace) const {
  const LaunchGrid grid = launch_grid(record(), io.batch);
  check_launch(record(), io, workspace, launch_workspace(record(), io.batch));

  // In the order that ir/package/manifest.h gives; the driver copies them before it returns, as many as the kernel has.
  LaunchIo tensors = io;
  WorkspaceView scratch = workspace;
  auto batch = static_cast<std::int32_t>(io.batch);
  std::array<void*, 8> parameters = {&tensors.input,          &tensors.output,         &tensors.residual,
                                     &scratch.partials,       &scratch.counters,       &batch,
                                     &tensors.input_activity, &tensors.output_activity};

  const LaunchGeometry& geometry = record().launch;
  const DriverTable& driver = *loaded_->device->driver;
  const ContextScope scope(*loaded_->device);
  const CUresult result =
      driver.cuLaunchKernel(loaded_->function, grid.tiles, grid.slices, 1, static_cast<unsigned>(geometry.threads), 1,
                            1, static_cast<unsigned>(geometry.shared_bytes), stream, parameters.data(), nullptr);
  if (result != kCudaSuccess) [[unlikely]] {
    fail_driver(
        driver, result, "cuLaunchKernel",
        fmt::format("while launching {} of layer {} with batch {}: {} x {} blocks of {} threads, {} bytes of "
                    "shared memory",
                    symbol(), layer(), io.batch, grid.tiles, grid.slices, geometry.threads, geometry.shared_bytes));
  }
}

}  // namespace burin
