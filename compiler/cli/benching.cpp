#include "compiler/cli/benching.h"

#include <cmath>

#include "compiler/reference.h"
#include "ir/element_type.h"
#include "ir/error.h"

namespace burin {
namespace {

constexpr std::uint64_t kInputSeed = 1;  // times do not depend on the values

}  // namespace

Bench::Bench(const Device& device, const Package& package, const BenchOptions& options)
    : device_(device), options_(options), stream_(device) {
  const std::shared_ptr<const Package> shared(std::shared_ptr<void>(), &package);  // not an owner
  for (int i = 0; i < options.copies; ++i) copies_.emplace_back(device_, shared, package.manifest.source);
}

KernelTimes Bench::time(const KernelRecord& record, int batch) const {
  const ConvShape& shape = record.shape;
  std::vector<Kernel> kernels;
  for (const LoadedPackage& copy : copies_) kernels.push_back(copy.kernel_by_symbol(record.symbol));
  std::vector<DeviceBuffer> inputs;
  // In the kernel's types and layouts; which value is where does not matter.
  const std::vector<float> words = pack_words(
      record.launch.input_element, random_tensor(kernels.front().input_shape().tensor_elements(batch), kInputSeed));
  for (int i = 0; i < kInputBuffers; ++i) inputs.emplace_back(device_, std::span<const float>(words));
  const auto output_bytes = static_cast<std::size_t>(kernels.front().output_shape().tensor_bytes(batch));
  const DeviceBuffer output(device_, output_bytes);
  DeviceBuffer residual;
  if (shape.epilogue.residual) {
    residual = DeviceBuffer(device_, output_bytes);
    residual.fill(0);
  }
  const Workspace workspace(device_, kernels.front().workspace_size(batch));
  const auto launch = [&](CUstream_st* stream, const Kernel& kernel, int turn) {
    kernel.launch(stream,
                  {.input = inputs[static_cast<std::size_t>(turn % kInputBuffers)].data(),
                   .output = output.data(),
                   .residual = shape.epilogue.residual ? residual.data() : nullptr,
                   .batch = batch},
                  workspace);
  };

  MeasureOptions measure_options;
  measure_options.samples = options_.samples;
  KernelTimes times;
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
