#include "compiler/execute/gpu_network.h"

#include <cstring>
#include <limits>

#include "compiler/execute/guarded_buffer.h"
#include "ir/error.h"
#include "ir/place_values.h"
#include "runtime/burin/network.hpp"

namespace burin {
namespace {

// The network, bound to memory of its own for some images.
class BoundNetwork {
 public:
  BoundNetwork(const Device& device, const LoadedNetwork& network, const NetworkProgram& program, int batch,
               const NetworkTensors& inputs)
      : device_(device), program_(program), batch_(batch) {
    NetworkIo io;
    io.batch = batch;
    for (const std::vector<float>& input : inputs) {
      inputs_.emplace_back(device, std::span<const float>(input));
      io.inputs.push_back(inputs_.back().data<void>());
    }
    for (const NetworkTensor& output : network.outputs()) {
      outputs_.emplace_back(device, static_cast<std::size_t>(output.bytes(batch)), kPoison);
      io.outputs.push_back(outputs_.back().buffer().data<void>());
    }
    run_.emplace(network.bind(io));
    BURIN_CHECK(run_->program_of(0).plan.batch == program.plan.batch && run_->part_of(run_->steps() - 1) == 0,
                "{} instead of the program for {}", run_->schedule().text(), program.plan.batch);
  }

  const NetworkRun& run() const { return *run_; }

  void poison() {
    for (GuardedBuffer& output : outputs_) fill_device(device_, output.buffer().data<void>(), output.bytes(), kPoison);
    for (std::size_t i = 0; i < program_.plan.buffers.size(); ++i) {
      const Buffer& buffer = program_.plan.buffers[i];
      if (buffer.home != BufferHome::arena) continue;
      fill_device(device_, address(static_cast<int>(i)), static_cast<std::size_t>(buffer.bytes), kPoison);
    }
  }

  // What a step reads or writes; the buffer's words up to its end come from the device.
  std::vector<float> values(const Place& place) const {
    std::vector<float> memory(static_cast<std::size_t>(words_until_end(program_.plan, place, batch_)));
    copy_from_device(device_, memory.data(), address(place.buffer), memory.size() * sizeof(float));
    return read_place(program_.plan, place, batch_, memory);
  }

  NetworkTensors outputs() const {
    NetworkTensors tensors;
    for (const GuardedBuffer& output : outputs_) {
      tensors.emplace_back(output.bytes() / sizeof(float));
      output.buffer().download(tensors.back().data(), output.bytes());
      if (!output.intact()) {
        fail(ErrorKind::verification, "the network wrote past the end of its output {}", tensors.size() - 1);
      }
    }
    return tensors;
  }

 private:
  void* address(int buffer) const {
    Place place;
    place.buffer = buffer;
    return run_->address(0, place);
  }

  const Device& device_;
  const NetworkProgram& program_;
  int batch_;
  std::vector<DeviceBuffer> inputs_;
  std::vector<GuardedBuffer> outputs_;
  std::optional<NetworkRun> run_;
};

class GpuNetworkExecutor : public NetworkExecutor {
 public:
  GpuNetworkExecutor(int ordinal, const Package& package)
      : device_(Device::open(ordinal)),
        // Not an owner: the package outlives the executor.
        network_(LoadedPackage(device_, std::shared_ptr<const Package>(std::shared_ptr<void>(), &package),
                               package.manifest.source)),
        stream_(device_) {}

  std::string name() const override {
    const DeviceInfo& info = device_.info();
    return fmt::format("cuda:{} ({}, {})", info.ordinal, info.name, info.arch());
  }

  NetworkTensors run(const NetworkProgram& program, int batch, const NetworkTensors& inputs,
                     const StepVisitor& visit) override {
    BoundNetwork bound(device_, network_, program, batch, inputs);
    if (visit) return run_steps(bound, program, visit);
    const NetworkTensors outputs = launch(bound);
    const NetworkTensors again = launch(bound);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (std::memcmp(outputs[i].data(), again[i].data(), outputs[i].size() * sizeof(float)) == 0) continue;
      fail(ErrorKind::verification, "a second launch gives another output '{}' than the first",
           network_.outputs()[i].name);
    }
    return outputs;
  }

 private:
  NetworkTensors launch(BoundNetwork& bound) const {
    bound.poison();
    bound.run().launch(stream_);
    stream_.synchronize();
    return bound.outputs();
  }

  NetworkTensors run_steps(BoundNetwork& bound, const NetworkProgram& program, const StepVisitor& visit) const {
    bound.poison();
    for (int i = 0; i < bound.run().steps(); ++i) {
      const Step& step = program.plan.steps[static_cast<std::size_t>(i)];
      StepValues seen;
      seen.step = i;
      for (const Place& read : step.reads) seen.reads.push_back(bound.values(read));
      bound.run().launch_step(i, stream_);
      stream_.synchronize();
      seen.output = bound.values(step.writes);
      visit(seen);
    }
    return bound.outputs();
  }

  Device device_;
  LoadedNetwork network_;
  Stream stream_;
};

}  // namespace

std::unique_ptr<NetworkExecutor> make_gpu_network_executor(int ordinal, const Package& package) {
  return std::make_unique<GpuNetworkExecutor>(ordinal, package);
}

}  // namespace burin
