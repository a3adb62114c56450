#include "ir/error.h"
#include "runtime/burin/runtime.hpp"
#include "runtime/elements.h"
#include "runtime/kernel_launch.h"
#include "runtime/launch_plan.h"
#include "runtime/loaded_code.h"

namespace burin {
namespace {

// A tensor of a convolution, whose form says what its words are, or as a flat run of values.
ImageShape image_shape(const KernelTensor& tensor) {
  ImageShape shape{
      .channels = static_cast<int>(tensor.words()),
      .height = 1,
      .width = 1,
      .channels_together = channels_together(tensor.layout),
      .alignment = tensor.alignment,
      .images_together = images_together(tensor.layout),
      .element = public_element(tensor.element),
      .image_pitch = tensor.image_words == tensor.words() ? 0 : tensor.image_words * tensor.elements_per_word()};
  if (!tensor.is_image()) return shape;
  shape.channels = tensor.channels;
  shape.channels_together = static_cast<int>(channels_side_by_side(tensor.layout, tensor.channels));
  shape.height = tensor.rows;
  shape.width = tensor.cols;
  return shape;
}

std::optional<ActivityShape> activity_shape(const KernelForm& form, TensorRole role) {
  const KernelTensor* tensor = form.find(role);
  if (tensor == nullptr) return std::nullopt;
  return ActivityShape{tensor->map->images, tensor->map->rows, tensor->map->cols,
                       tensor->channels,    tensor->rows,      tensor->cols};
}

}  // namespace

const std::string& LoadedKernel::layer() const { return kernel().op; }
const std::string& LoadedKernel::symbol() const { return kernel().symbol; }
const Kernel& LoadedKernel::kernel() const { return *loaded_->kernel; }
const ConvShape& LoadedKernel::shape() const {
  if (!kernel().layer) fail(ErrorKind::usage, "{} is no convolution, and has no shape of one", kernel().owner());
  return kernel().layer->shape;
}
bool LoadedKernel::needs_residual() const { return kernel().form.has(TensorRole::residual); }
int LoadedKernel::planned_batch() const { return kernel().planned_batch; }
LoadedFrom LoadedKernel::loaded_from() const { return loaded_->from; }
const std::string& LoadedKernel::loaded_arch() const { return loaded_->arch; }
const std::string& LoadedKernel::load_log() const { return loaded_->module->log; }
KernelAttributes LoadedKernel::attributes() const { return loaded_->module->attributes; }

ImageShape LoadedKernel::input_shape() const { return image_shape(kernel().form.input()); }
ImageShape LoadedKernel::output_shape() const { return image_shape(kernel().form.output()); }

std::optional<ActivityShape> LoadedKernel::input_activity() const {
  return activity_shape(kernel().form, TensorRole::input_map);
}
std::optional<ActivityShape> LoadedKernel::output_activity() const {
  return activity_shape(kernel().form, TensorRole::output_map);
}

std::string LoadedKernel::library_call(int batch) const {
  const std::shared_ptr<const LibraryLaunch> call = loaded_->call_for(batch);
  return call == nullptr ? "" : call->what();
}

LaunchGrid LoadedKernel::grid(int batch) const { return launch_grid(kernel(), batch); }
WorkspaceSize LoadedKernel::workspace_size(int batch) const { return workspace_of(*loaded_, batch); }

KernelLaunch LoadedKernel::prepared(const LaunchIo& io, const WorkspaceView& workspace) const {
  check_launch(kernel(), io, workspace, workspace_of(*loaded_, io.batch));
  const auto writable = [](const void* pointer) { return const_cast<void*>(pointer); };
  return make_launch(loaded_,
                     {.reads = {writable(io.input), writable(io.residual)},
                      .output = io.output,
                      .scratch = workspace,
                      .input_map = writable(io.input_activity),
                      .output_map = io.output_activity},
                     io.batch);
}

void LoadedKernel::launch(CUstream_st* stream, const LaunchIo& io, const WorkspaceView& workspace) const {
  prepared(io, workspace).enqueue(stream);
}

}  // namespace burin
