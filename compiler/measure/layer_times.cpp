#include "compiler/measure/layer_times.h"

#include <cmath>

#include "compiler/dead_channels.h"
#include "compiler/reference.h"
#include "ir/baked_plan_activity.h"
#include "ir/element_type.h"
#include "ir/error.h"

namespace burin {
namespace {

constexpr std::uint64_t kInputSeed = 1;  // times do not depend on the values
constexpr std::uint64_t kDeadSeed = 2;

DeviceBuffer on_device(const Device& device, std::span<const std::uint8_t> bytes) {
  DeviceBuffer buffer(device, bytes.size());
  buffer.upload(bytes.data(), bytes.size());
  return buffer;
}

}  // namespace

Bench::Bench(const Device& device, const Package& package, const BenchOptions& options)
    : device_(device), options_(options), stream_(device) {
  const std::shared_ptr<const Package> shared(std::shared_ptr<void>(), &package);  // not an owner
  for (int i = 0; i < options.copies; ++i) copies_.emplace_back(device_, shared, package.manifest.source);
}

KernelTimes Bench::time(const Kernel& record, int batch, std::optional<double> dead) const {
  const ConvShape& shape = record.layer->shape;
  std::vector<LoadedKernel> kernels;
  for (const LoadedPackage& copy : copies_) kernels.push_back(copy.kernel_by_symbol(record.symbol));
  std::vector<DeviceBuffer> inputs;
  const KernelTensor& tensor = record.form.input();
  const KernelTensor* in_map = record.form.find(TensorRole::input_map);
  const KernelTensor* out_map = record.form.find(TensorRole::output_map);
  const KernelTensor* added = record.form.find(TensorRole::residual);
  KernelTimes times;
  std::vector<float> values;
  std::vector<std::uint8_t> activity;
  if (dead) {
    BURIN_CHECK(in_map != nullptr, "kernel {} has no activity map of its input", record.symbol);
    const ActivityExtent extent = input_extent(shape, batch);
    values = random_tensor(shape.input_elements() * batch, kInputSeed);
    kill_channels(*in_map->map, extent, values, *dead, kDeadSeed);
    activity = activity_of(*in_map->map, extent, values);
    if (out_map != nullptr) {
      times.skipped = skipped_share(shape, batch, *out_map->map, *in_map->map, activity);
    }
    values = from_nchw(tensor.layout, values, shape.in_channels, shape.in_h, shape.in_w);
  } else {
    // Which value is where does not matter.
    values = random_tensor(kernels.front().input_shape().tensor_elements(batch), kInputSeed);
  }
  const std::vector<float> words = pack_words(tensor.element, values);
  const DeviceBuffer input_activity = on_device(device_, activity);
  const std::optional<ActivityShape> marked = kernels.front().output_activity();
  const DeviceBuffer output_activity(device_, dead && marked ? static_cast<std::size_t>(marked->bytes(batch)) : 0);
  for (int i = 0; i < kInputBuffers; ++i) inputs.emplace_back(device_, std::span<const float>(words));
  const auto output_bytes = static_cast<std::size_t>(kernels.front().output_shape().tensor_bytes(batch));
  const DeviceBuffer output(device_, output_bytes);
  DeviceBuffer residual;
  if (added != nullptr) {
    residual = DeviceBuffer(device_, static_cast<std::size_t>(added->spanned_words(batch)) * kWordBytes);
    residual.fill(0);
  }
  const Workspace workspace(device_, kernels.front().workspace_size(batch));
  const auto launch = [&](CUstream_st* stream, const LoadedKernel& kernel, int turn) {
    kernel.launch(stream,
                  {.input = inputs[static_cast<std::size_t>(turn % kInputBuffers)].data(),
                   .output = output.data(),
                   .residual = added != nullptr ? residual.data() : nullptr,
                   .batch = batch,
                   .input_activity = dead ? input_activity.data() : nullptr,
                   .output_activity = dead && marked ? output_activity.data() : nullptr},
                  workspace);
  };

  MeasureOptions measure_options;
  measure_options.samples = options_.samples;
  times.warm = measure(
      device_, stream_, [&](CUstream_st* stream, int i) { launch(stream, kernels.front(), i); }, measure_options);
  times.cold = measure(
      device_, stream_,
      [&](CUstream_st* stream, int i) { launch(stream, kernels[static_cast<std::size_t>(i) % kernels.size()], i); },
      measure_options);
  times.loaded_from =
      kernels.front().loaded_from() == LoadedFrom::cubin ? kernels.front().loaded_arch() + " cubin" : "JIT of the PTX";
  return times;
}

double geometric_mean(const std::vector<double>& values) {
  if (values.empty()) return 0;
  double sum = 0;
  for (const double value : values) sum += std::log(value);
  return std::exp(sum / static_cast<double>(values.size()));
}

}  // namespace burin
