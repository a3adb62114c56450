#include "ir/derive_form.h"

#include <algorithm>

#include "ir/baked_plan_activity.h"
#include "ir/error.h"
#include "ir/printable.h"

namespace burin {
namespace {

KernelTensor image_tensor(TensorRole role, ElementType element, TensorLayout layout, int channels, int rows, int cols,
                          std::int64_t image_words) {
  KernelTensor tensor{.role = role, .element = element, .layout = layout};
  tensor.argument = role == TensorRole::residual ? 1 : 0;
  tensor.channels = channels;
  tensor.rows = rows;
  tensor.cols = cols;
  tensor.run_words = image_elements(layout, channels, rows, cols);
  tensor.image_words = image_words == 0 ? tensor.run_words : image_words;
  tensor.alignment = channels_together(layout) * kWordBytes;  // whole words are read and written, also of halves
  return tensor;
}

KernelTensor map_tensor(TensorRole role, const std::optional<ActivityMap>& map, int channels, int rows, int cols) {
  if (!map) return {.role = role};
  return {.role = role, .channels = channels, .rows = rows, .cols = cols, .map = map};
}

LaunchGeometry launch_of(const BakedPlan& plan, const ConvShape& shape) {
  LaunchGeometry launch;
  launch.threads = plan.threads;
  launch.shared_bytes = plan.shared_bytes();
  launch.slices = static_cast<int>(plan.slices.size());
  launch.tile_images = plan.tile_images();
  launch.tiles_per_image = plan.tiles_per_image(shape);
  launch.cluster_tiles = plan.cluster.tiles;
  if (plan.reduction == Reduction::last_block) {
    launch.workspace_bytes_per_tile = static_cast<std::int64_t>(plan.slices.size()) * plan.group_capacity() *
                                      plan.sums_per_channel() * plan.threads * kWordBytes;
    launch.counters_per_tile = static_cast<int>(plan.groups.size());
  }
  return launch;
}

void refuse(const std::vector<std::string>& faults) {
  if (!faults.empty()) fail(ErrorKind::bad_input, "{}", fmt::join(faults, "; "));
}

void derive_baked(Kernel& kernel) {
  if (!kernel.layer) fail(ErrorKind::bad_input, "it is no convolution, which {} kernels are", kBakedProvider);
  const BakedPlan plan = parse_baked_plan(kernel.plan);
  refuse(verify(plan, kernel.layer->shape));
  if (to_string(plan.precision) != kernel.precision) {
    fail(ErrorKind::bad_input, "it computes in {}, and the kernel is said to in {}", to_string(plan.precision),
         printable(kernel.precision));
  }
  if (plan.batch != kernel.planned_batch) {
    fail(ErrorKind::bad_input, "it is for batch {}, and the kernel is said to be for {}", plan.batch,
         kernel.planned_batch);
  }
  kernel.plan_short = describe(plan);
  kernel.form = form_of(plan, kernel.layer->shape);
  refuse(verify(kernel.form));
}

void derive_template(Kernel& kernel) {
  const TemplatePlan plan = parse_template_plan(kernel.plan);
  if (plan.template_name != kernel.provider) {
    fail(ErrorKind::bad_input, "it is of {}, and the kernel is said to be of {}", printable(plan.template_name),
         printable(kernel.provider));
  }
  refuse(verify(plan));
  const Precision precision = precision_of(plan.output().element);
  if (to_string(precision) != kernel.precision) {
    fail(ErrorKind::bad_input, "it writes {}, and the kernel is said to compute in {}",
         to_string(plan.output().element), printable(kernel.precision));
  }
  kernel.plan_short = describe(plan);
  kernel.form = plan.form;
}

void derive_code(Kernel& kernel) {
  if (kernel.provider == kBakedProvider) {
    derive_baked(kernel);
  } else {
    derive_template(kernel);
  }
}

// The form is that of the kernel's own code; the call has the same tensors.
void derive_with_call(Kernel& kernel) {
  const bool of_linear = kernel.provider == kLinearCublasProvider;
  if (of_linear && (kernel.layer || !kernel.linear || !kernel.called)) {
    fail(ErrorKind::bad_input, "nothing says what the call computes of a fully connected layer: 'linear' and 'called'");
  }
  if (!of_linear && !kernel.layer) {
    fail(ErrorKind::bad_input, "it is no convolution, which {} kernels are", kernel.provider);
  }
  const LibraryPlan plan = parse_library_plan(kernel.plan);
  if (plan.call.library() != library_of(kernel.provider)) {
    fail(ErrorKind::bad_input, "it calls {}, and the kernel is said to be of {}", to_string(plan.call.library()),
         printable(kernel.provider));
  }
  Kernel own;
  own.provider = plan.provider;
  own.plan = plan.plan;
  own.precision = kernel.precision;
  own.layer = kernel.layer;
  own.planned_batch = kernel.planned_batch;
  // Weights in the code would be in the package twice.
  if (plan.provider == kBakedProvider) fail(ErrorKind::bad_input, "its own code is of {}", kBakedProvider);
  derive_code(own);
  const ConvShape shape = kernel.called_shape();
  refuse(verify(shape));
  refuse(verify(plan.call, shape, own.form));
  if (of_linear && !called_format(own.form).is_plain()) {
    fail(ErrorKind::bad_input, "a fully connected layer is called on floats in nchw, and its tensors are {}",
         to_string(called_format(own.form)));
  }
  kernel.plan_short = describe(plan.call, own.plan_short);
  kernel.form = form_with_call(std::move(own.form), plan.call);
  if (!kernel.edited) kernel.call = plan.call;
}

}  // namespace

KernelForm form_of(const BakedPlan& plan, const ConvShape& shape) {
  const ElementType element = element_of(plan.precision);
  KernelForm form{.tensors = {}, .launch = launch_of(plan, shape)};
  KernelTensor input = image_tensor(TensorRole::input, element, plan.input_layout, shape.in_channels, shape.in_h,
                                    shape.in_w, plan.input_image_words);
  if (plan.staging == Staging::bulk) input.alignment = std::max(input.alignment, kWideAccessBytes);
  const auto output = [&](TensorRole role, int rows, int cols, std::int64_t words) {
    return image_tensor(role, element, plan.output_layout, shape.out_channels, rows, cols, words);
  };
  KernelTensor residual{.role = TensorRole::residual, .argument = 1};
  if (shape.epilogue.residual) {
    residual = output(TensorRole::residual, shape.conv_h(), shape.conv_w(), plan.residual_image_words);
  }
  form.tensors = {
      input, output(TensorRole::output, shape.out_h(), shape.out_w(), plan.output_image_words), residual,
      KernelTensor{.role = TensorRole::partials, .run_words = form.launch.workspace_bytes_per_tile / kWordBytes},
      KernelTensor{.role = TensorRole::counters, .run_words = form.launch.counters_per_tile}};
  if (plan.uses_activity()) {
    form.tensors.push_back(map_tensor(TensorRole::input_map, plan.skips, shape.in_channels, shape.in_h, shape.in_w));
    const std::optional<ActivityMap> marks = plan.marks ? std::optional(plan.output_map()) : std::nullopt;
    form.tensors.push_back(map_tensor(TensorRole::output_map, marks, shape.out_channels, shape.out_h(), shape.out_w()));
  }
  return form;
}

void derive_form(Kernel& kernel) {
  kernel.call.reset();
  if (library_of(kernel.provider)) {
    derive_with_call(kernel);
  } else {
    derive_code(kernel);
  }
}

}  // namespace burin
