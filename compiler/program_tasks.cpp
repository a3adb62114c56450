#include "compiler/program_tasks.h"

#include <algorithm>
#include <numeric>

namespace burin {
namespace {

Task start(const CompileOptions& options, int batch) {
  Task task;
  task.batch = batch;
  task.archs = options.archs;
  task.linear_storage = options.linear_storage;
  return task;
}

// What a step reads or writes, as the kernel is given it. The place's beginning is as aligned as its offset in a buffer
// is, and so are all images.
KernelTensor tensor_at(TensorRole role, const Buffer& buffer, const Place& place,
                       const std::vector<std::int64_t>& shape) {
  KernelTensor tensor = whole_tensor(role, shape, buffer.format.element, buffer.format.layout);
  const int word = tensor.word_bytes();
  tensor.image_words = place.image_stride / word;
  tensor.run_words = place.run_bytes / word;
  tensor.runs = place.runs;
  tensor.run_pitch = place.run_stride / word;
  // Part of a tensor that is moved is no image.
  if (tensor.words() != image_words(buffer.format, {tensor.channels, tensor.rows, tensor.cols})) {
    tensor.channels = tensor.rows = tensor.cols = 0;
  }
  const std::int64_t distance = std::gcd(place.offset, std::gcd(place.image_stride, place.run_stride));
  tensor.alignment = access_bytes(buffer.format, distance);
  return tensor;
}

// What the options ask of the convolution, whose tensors are known.
void set_convolution(Task& task, const ConvLayer& layer, const CompileOptions& options) {
  const Precision precision = options.precisions.of(layer.name);
  task.layer = &layer;
  task.precision = task.writes.element == ElementType::f32 ? Precision::fp32 : precision;
  if (task.writes.element == ElementType::f32 || task.reads.front().element == ElementType::f32) {
    task.factors = factors_of(precision);
  }
  task.activity_maps = options.skip_dead_tiles;
  const auto zeros = options.activation_zeros.find(layer.name);
  if (zeros != options.activation_zeros.end()) task.zeros = zeros->second;
}

// The same of a fully connected layer, whose tensors are FP32.
void set_linear(Task& task, const CompileOptions& options) {
  if (task.get<Linear>() != nullptr) task.factors = linear_factors(options.precisions.of(task.name));
}

}  // namespace

Task task_of(const Network& network, const Program& program, const Step& step, const CompileOptions& options) {
  const auto buffer = [&](const Place& place) -> const Buffer& { return program.buffer(place); };
  Task task = start(options, program.batch);
  task.name = step.name;
  task.kind = step.kind;
  if (step.is_copy()) {
    task.inputs = {{step.reads[0].run_bytes / kWordBytes * step.reads[0].runs}};  // words: what they hold is the same
    task.output = task.inputs[0];
  } else {
    task.op = &network.operators[static_cast<std::size_t>(step.op)];
    const auto shape = [&](int tensor) { return network.tensors[static_cast<std::size_t>(tensor)].shape; };
    for (const int input : task.op->inputs) task.inputs.push_back(shape(input));
    task.output = shape(task.op->output);
    task.description = describe(network, *task.op);
  }
  for (std::size_t i = 0; i < step.reads.size(); ++i) {
    const TensorRole role = i == 0 ? TensorRole::input : TensorRole::residual;
    task.reads.push_back(tensor_at(role, buffer(step.reads[i]), step.reads[i], task.inputs[i]));
  }
  task.writes = tensor_at(TensorRole::output, buffer(step.writes), step.writes, task.output);
  if (const auto* convolution = task.get<Convolution>()) {
    set_convolution(task, network.layers[static_cast<std::size_t>(convolution->layer)], options);
  }
  set_linear(task, options);
  return task;
}

namespace {

// An operator whose tensors have memory of their own; a residual is in the format of the output, what excites an image
// is plain. `layer`: of a convolution.
Task task_alone(const Operator& op, const ConvLayer* layer, const std::vector<std::vector<std::int64_t>>& inputs,
                const std::vector<std::int64_t>& output, const TensorFormat& read, const TensorFormat& written,
                int batch, const CompileOptions& options) {
  Task task = start(options, batch);
  task.name = op.name;
  task.kind = kind_name(op.kind);
  task.op = &op;
  task.inputs = inputs;
  task.output = output;
  task.reads = {whole_tensor(TensorRole::input, inputs[0], read.element, read.layout)};
  if (inputs.size() > 1) {
    const TensorFormat second = std::holds_alternative<Excite>(op.kind) ? TensorFormat() : written;
    task.reads.push_back(whole_tensor(TensorRole::residual, inputs[1], second.element, second.layout));
  }
  task.writes = whole_tensor(TensorRole::output, output, written.element, written.layout);
  if (layer != nullptr) set_convolution(task, *layer, options);
  set_linear(task, options);
  return task;
}

}  // namespace

TensorFormat asked_format(Precision precision, const std::optional<TensorLayout>& layout) {
  if (layout == TensorLayout::nchw) return {};
  return format_of(precision, layout.value_or(TensorLayout::nchw));
}

Task task_of(const Operator& op, const ConvLayer& layer, int batch, const CompileOptions& options) {
  const Precision precision = options.precisions.of(layer.name);
  const TensorFormat input = asked_format(precision, options.layout);
  const TensorFormat output = asked_format(precision, options.output_layout ? options.output_layout : options.layout);
  return task_of(op, layer, input, output, batch, options);
}

Task task_of(const Operator& op, const ConvLayer& layer, const TensorFormat& input, const TensorFormat& output,
             int batch, const CompileOptions& options) {
  const ConvShape& shape = layer.shape;
  std::vector<std::vector<std::int64_t>> inputs = {{shape.in_channels, shape.in_h, shape.in_w}};
  if (shape.epilogue.residual) inputs.push_back({shape.out_channels, shape.conv_h(), shape.conv_w()});
  return task_alone(op, &layer, inputs, {shape.out_channels, shape.out_h(), shape.out_w()}, input, output, batch,
                    options);
}

Task task_of(const Operator& op, const std::vector<std::vector<std::int64_t>>& inputs,
             const std::vector<std::int64_t>& output, const TensorFormat& read, const TensorFormat& written, int batch,
             const CompileOptions& options) {
  return task_alone(op, nullptr, inputs, output, read, written, batch, options);
}

std::vector<Task> layer_tasks(const Network& network, const CompileOptions& options, int batch) {
  std::vector<Task> tasks;
  const auto tensor = [&](int index) -> const Activations& { return network.tensors[static_cast<std::size_t>(index)]; };
  for (const Operator& op : network.operators) {
    const auto* convolution = std::get_if<Convolution>(&op.kind);
    if (convolution == nullptr && !std::holds_alternative<Linear>(op.kind)) continue;
    const ConvLayer* layer =
        convolution == nullptr ? nullptr : &network.layers[static_cast<std::size_t>(convolution->layer)];
    std::vector<std::vector<std::int64_t>> inputs;
    for (const int input : op.inputs) inputs.push_back(tensor(input).shape);
    const Activations &read = tensor(op.inputs.front()), &written = tensor(op.output);
    tasks.push_back(task_alone(op, layer, inputs, written.shape, read.format, written.format, batch, options));
  }
  return tasks;
}

}  // namespace burin
