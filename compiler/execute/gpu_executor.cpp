#include <algorithm>
#include <string>

#include "compiler/execute/executor.h"
#include "ir/error.h"
#include "ir/place_values.h"
#include "runtime/burin/device_memory.hpp"
#include "runtime/burin/network.hpp"

namespace burin {
namespace {

constexpr unsigned char kPoison = 0xFF;  // four of them are a NaN

// Device memory with words behind it that tell whether a kernel wrote past its end.
struct GuardedBuffer {
  static constexpr std::size_t kGuardBytes = 4096;
  static constexpr unsigned char kGuard = 0xB1;

  // Nothing is poisoned yet.
  GuardedBuffer(const Device& device, std::size_t size) : bytes(size), buffer(device, size + kGuardBytes) {
    buffer.fill(kGuard);
  }
  bool intact() const {
    std::string guard(kGuardBytes, '\0');
    buffer.download(guard.data(), kGuardBytes, bytes);
    return guard == std::string(kGuardBytes, static_cast<char>(kGuard));
  }

  std::size_t bytes;  // before the guard
  DeviceBuffer buffer;
};

// The words of a tensor as the program has it.
std::vector<float> packed(const Program& program, const Buffer& buffer, int batch, const std::vector<float>& values) {
  const Place place = whole_place(program, buffer);
  std::vector<float> words(static_cast<std::size_t>(words_until_end(program, place, batch)));
  write_place(program, place, batch, values, words);
  return words;
}

// A program, bound to memory of its own for some images.
class BoundProgram {
 public:
  BoundProgram(const Device& device, const LoadedNetwork& network, const Program& program, int batch,
               const Tensors& inputs)
      : device_(device), program_(program), batch_(batch) {
    NetworkIo io;
    io.batch = batch;
    for (const Buffer* input : program.inputs()) {
      const std::vector<float> words =
          packed(program, *input, batch, inputs.at(static_cast<std::size_t>(input->argument)));
      inputs_.emplace_back(device, std::span<const float>(words));
      io.inputs.push_back(inputs_.back().data<void>());
    }
    for (const Buffer* output : program.outputs()) {
      outputs_.emplace_back(device, static_cast<std::size_t>(program.bytes(*output, batch)));
      io.outputs.push_back(outputs_.back().buffer.data<void>());
    }
    run_.emplace(network.bind(io));
    BURIN_CHECK(run_->program_of(0).batch == program.batch && run_->part_of(run_->steps() - 1) == 0,
                "{} instead of the program for {}", run_->schedule().text(), program.batch);
  }

  const NetworkRun& run() const { return *run_; }

  void poison() {
    for (GuardedBuffer& output : outputs_) fill_device(device_, output.buffer.data<void>(), output.bytes, kPoison);
    for (std::size_t i = 0; i < program_.buffers.size(); ++i) {
      const Buffer& buffer = program_.buffers[i];
      if (buffer.home != BufferHome::arena) continue;
      fill_device(device_, address(static_cast<int>(i)), static_cast<std::size_t>(buffer.bytes), kPoison);
    }
  }

  // What a step reads or writes; the buffer's bytes up to its end come from the device.
  std::vector<float> values(const Place& place) const { return read_place(program_, place, batch_, memory_of(place)); }
  std::string filling(const Place& place) const { return filling_fault(program_, place, batch_, memory_of(place)); }

  // The outputs as they lie in memory, filling and all.
  Tensors output_memory() const {
    Tensors tensors;
    for (const Buffer* output : program_.outputs()) tensors.push_back(memory_of(whole_place(program_, *output)));
    return tensors;
  }

  // What `memory`, which they lie in, holds of them.
  Tensors outputs(const Tensors& memory) const {
    Tensors tensors;
    for (const Buffer* output : program_.outputs()) {
      if (!outputs_[tensors.size()].intact()) {
        fail(ErrorKind::verification, "the program wrote past the end of its output '{}'", output->tensor);
      }
      const Place place = whole_place(program_, *output);
      const std::vector<float>& words = memory[tensors.size()];
      if (const std::string fault = filling_fault(program_, place, batch_, words); !fault.empty()) {
        fail(ErrorKind::verification, "the program's output '{}': {}", output->tensor, fault);
      }
      tensors.push_back(read_place(program_, place, batch_, words));
    }
    return tensors;
  }

 private:
  std::vector<float> memory_of(const Place& place) const {
    std::vector<float> memory(static_cast<std::size_t>(words_until_end(program_, place, batch_)));
    const auto bytes = static_cast<std::size_t>(program_.bytes(program_.buffer(place), batch_));
    copy_from_device(device_, memory.data(), address(place.buffer), std::min(bytes, memory.size() * sizeof(float)));
    return memory;
  }
  void* address(int buffer) const {
    Place place;
    place.buffer = buffer;
    return run_->address(0, place);
  }

  const Device& device_;
  const Program& program_;
  int batch_;
  std::vector<DeviceBuffer> inputs_;
  std::vector<GuardedBuffer> outputs_;
  std::optional<NetworkRun> run_;
};

class GpuExecutor : public Executor {
 public:
  GpuExecutor(const Device& device, const Package& package, const LoadOptions& options)
      : device_(device),
        // Not an owner: the package outlives the executor.
        package_(device_, std::shared_ptr<const Package>(std::shared_ptr<void>(), &package), package.manifest.source,
                 options),
        stream_(device_) {}

  std::string name() const override {
    const DeviceInfo& info = device_.info();
    return fmt::format("cuda:{} ({}, {})", info.ordinal, info.name, info.arch());
  }
  std::vector<std::string> notes() const override { return package_.notes(); }
  bool concurrent() const override { return false; }

  Tensors run(const Program& program, int batch, const Tensors& inputs, const StepVisitor& visit) override {
    const LoadedNetwork network(package_, program.name);
    BoundProgram bound(device_, network, program, batch, inputs);
    if (visit) return run_steps(bound, program, visit);
    const Tensors outputs = launch(bound);
    const Tensors again = launch(bound);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (same_bits(outputs[i], again[i])) continue;
      fail(ErrorKind::verification, "a second launch gives another output '{}' than the first",
           program.outputs()[i]->tensor);
    }
    return bound.outputs(outputs);
  }

 private:
  // Returns the outputs as they lie in memory.
  Tensors launch(BoundProgram& bound) const {
    bound.poison();
    bound.run().launch(stream_);
    stream_.synchronize();
    return bound.output_memory();
  }

  Tensors run_steps(BoundProgram& bound, const Program& program, const StepVisitor& visit) const {
    bound.poison();
    for (int i = 0; i < bound.run().steps(); ++i) {
      const Step& step = program.steps[static_cast<std::size_t>(i)];
      StepValues seen;
      seen.step = i;
      for (const Place& read : step.reads) seen.reads.push_back(bound.values(read));
      bound.run().launch_step(i, stream_);
      stream_.synchronize();
      seen.output = bound.values(step.writes);
      seen.fault = bound.filling(step.writes);
      visit(seen);
    }
    return bound.outputs(bound.output_memory());
  }

  Device device_;
  LoadedPackage package_;
  Stream stream_;
};

}  // namespace

std::unique_ptr<Executor> make_gpu_executor(const Device& device, const Package& package, const LoadOptions& options) {
  return std::make_unique<GpuExecutor>(device, package, options);
}

}  // namespace burin
