#include "compiler/execute/layer_executor.h"

#include <algorithm>
#include <charconv>

#include "compiler/execute/converting_executor.h"
#include "compiler/execute/guarded_buffer.h"
#include "compiler/host/executor.h"
#include "compiler/host/packaged_code.h"
#include "ir/error.h"
#include "runtime/burin/device_memory.hpp"
#include "runtime/burin/runtime.hpp"

namespace burin {
namespace {

class HostExecutor : public ConvertingExecutor {
 public:
  explicit HostExecutor(const Package& package) : package_(package) {}

  std::string name() const override { return "host"; }
  bool concurrent() const override { return true; }

  void launch(const Kernel& kernel, int batch, std::span<const float> input, std::span<const float> residual,
              std::span<float> output, const ActivityMaps& maps) override {
    HostKernel compiled(bitcode_of(package_, kernel), kernel.symbol, kernel.form);
    std::vector<std::uint32_t> weights;
    if (!kernel.weights.empty()) weights = words_of(package_.files.at(kernel.weights));
    compiled.run({.batch = batch,
                  .input = input,
                  .output = output,
                  .residual = residual,
                  .weights = weights,
                  .input_map = maps.input,
                  .output_map = maps.output});
  }

 private:
  const Package& package_;
};

// A launch's workspace whose partial sums are NaN before, so that reading one that was never written shows.
class Scratch {
 public:
  Scratch(const Device& device, const WorkspaceSize& size)
      : counters_(device, static_cast<std::size_t>(size.counter_bytes), 0),
        partials_(device, static_cast<std::size_t>(size.partial_bytes), kPoison) {}

  WorkspaceView view() const {
    return {.counters = counters_.buffer().data<std::uint32_t>(),
            .counter_bytes = static_cast<std::int64_t>(counters_.bytes()),
            .partials = partials_.buffer().data<float>(),
            .partial_bytes = static_cast<std::int64_t>(partials_.bytes())};
  }

  // What every launch promises: its counters are zero again, and nothing behind either part was touched.
  void check(const std::string& layer) const {
    std::vector<unsigned char> counters(counters_.bytes());
    counters_.buffer().download(counters.data(), counters.size());
    if (std::any_of(counters.begin(), counters.end(), [](unsigned char byte) { return byte != 0; })) {
      fail(ErrorKind::verification, "layer '{}': the kernel left arrival counters that are not zero", layer);
    }
    if (!counters_.intact() || !partials_.intact()) {
      fail(ErrorKind::verification, "layer '{}': the kernel wrote past the end of its workspace", layer);
    }
  }

 private:
  GuardedBuffer counters_, partials_;
};

// A launch's activity maps, where it has any.
class DeviceMaps {
 public:
  DeviceMaps(const Device& device, const ActivityMaps& maps) : maps_(maps) {
    if (!maps.input.empty()) {
      input_.emplace(device, maps.input.size());
      input_->upload(maps.input.data(), maps.input.size());
    }
    if (!maps.output.empty()) {
      output_.emplace(device, maps.output.size(), kPoison);
      output_->buffer().upload(maps.output.data(), maps.output.size());
    }
  }

  const void* input() const { return input_ ? input_->data() : nullptr; }
  void* output() const { return output_ ? output_->buffer().data() : nullptr; }

  // The map that the launch has written.
  void fetch(const std::string& layer) const {
    if (!output_) return;
    output_->buffer().download(maps_.output.data(), maps_.output.size());
    if (!output_->intact()) {
      fail(ErrorKind::verification, "layer '{}': the kernel wrote past the end of its output's activity map", layer);
    }
  }

 private:
  ActivityMaps maps_;
  std::optional<DeviceBuffer> input_;
  std::optional<GuardedBuffer> output_;
};

class CudaExecutor : public ConvertingExecutor {
 public:
  CudaExecutor(int ordinal, const Package& package)
      : device_(Device::open(ordinal)),
        // Not an owner: the package outlives the executor.
        loaded_(device_, std::shared_ptr<const Package>(std::shared_ptr<void>(), &package), package.manifest.source),
        stream_(device_) {}

  std::string name() const override {
    const DeviceInfo& info = device_.info();
    return fmt::format("cuda:{} ({}, {})", info.ordinal, info.name, info.arch());
  }
  bool concurrent() const override { return false; }

  void launch(const Kernel& record, int batch, std::span<const float> input, std::span<const float> residual,
              std::span<float> output, const ActivityMaps& maps) override {
    const LoadedKernel kernel = loaded_.kernel_by_symbol(record.symbol);
    const DeviceBuffer device_input(device_, input);
    DeviceBuffer device_residual;
    if (!residual.empty()) device_residual = DeviceBuffer(device_, residual);
    GuardedBuffer device_output(device_, output.size_bytes(), kPoison);
    device_output.buffer().upload(output.data(), output.size_bytes());
    const DeviceMaps device_maps(device_, maps);
    const Scratch scratch(device_, kernel.workspace_size(batch));
    kernel.launch(stream_,
                  {.input = device_input.data(),
                   .output = device_output.buffer().data(),
                   .residual = residual.empty() ? nullptr : device_residual.data(),
                   .batch = batch,
                   .input_activity = device_maps.input(),
                   .output_activity = device_maps.output()},
                  scratch.view());
    stream_.synchronize();
    device_output.buffer().download(output.data(), output.size_bytes());
    if (!device_output.intact()) {
      fail(ErrorKind::verification, "layer '{}': the kernel wrote past the end of its output", record.op);
    }
    device_maps.fetch(record.op);
    scratch.check(record.op);
  }

 private:
  Device device_;
  LoadedPackage loaded_;
  Stream stream_;
};

bool has_gpu() {
  try {
    return device_count() > 0;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::device) throw;
    return false;  // no driver
  }
}

}  // namespace

DeviceChoice choose_device(const std::string& text) {
  if (text == "host") return {};
  if (text == "auto") {
    if (has_gpu()) return {.host = false, .ordinal = 0, .note = {}};
    return {.note = "no GPU found: using the host executor (burin doctor says what is missing)"};
  }
  int ordinal = 0;
  if (text != "cuda") {
    const std::string_view digits = std::string_view(text).substr(std::min<std::size_t>(text.size(), 5));
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), ordinal);
    if (!text.starts_with("cuda:") || error != std::errc() || end != digits.data() + digits.size() || ordinal < 0)
      fail(ErrorKind::usage, "--device '{}' is not one of auto, host, cuda, cuda:N", text);
  }
  const int devices = device_count();
  if (ordinal >= devices) {
    fail(ErrorKind::device, "--device {}: the driver finds {} device{}; --device host needs none", text, devices,
         devices == 1 ? "" : "s");
  }
  return {.host = false, .ordinal = ordinal, .note = {}};
}

std::optional<std::string> native_arch() {
  if (!has_gpu()) return std::nullopt;
  return Device::open(0).info().arch();
}

const Kernel* kernel_for(const Manifest& manifest, const std::string& layer, int batch) {
  const Kernel* best = nullptr;
  const auto rank = [batch](const Kernel& kernel) {
    return kernel.planned_batch <= batch ? kernel.planned_batch : -kernel.planned_batch;
  };
  for (const Kernel& kernel : manifest.kernels) {
    if (kernel.is_convolution() && kernel.op == layer && (best == nullptr || rank(kernel) > rank(*best)))
      best = &kernel;
  }
  return best;
}

std::unique_ptr<Executor> make_executor(const DeviceChoice& choice, const Package& package) {
  if (choice.host) return std::make_unique<HostExecutor>(package);
  return std::make_unique<CudaExecutor>(choice.ordinal, package);
}

}  // namespace burin
