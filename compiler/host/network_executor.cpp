#include "compiler/host/network_executor.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <limits>
#include <map>
#include <optional>
#include <thread>

#include "compiler/host/executor.h"
#include "compiler/host/packaged_code.h"
#include "ir/element_type.h"
#include "ir/error.h"
#include "ir/place_values.h"
#include "ir/saturate.h"

namespace burin {
namespace {

constexpr float kPoison = std::numeric_limits<float>::quiet_NaN();

struct HostStepKernel {
  const Kernel* kernel = nullptr;
  std::vector<std::uint32_t> weights;
  std::optional<HostKernel> host;
};

// The memory that a program's buffers are.
class Memory {
 public:
  Memory(const NetworkPlan& plan, int batch, const std::vector<std::span<const float>>& inputs,
         std::vector<std::vector<float>>& outputs)
      : plan_(plan),
        batch_(batch),
        inputs_(inputs),
        outputs_(outputs),
        arena_(static_cast<std::size_t>(plan.arena_bytes / kWordBytes), kPoison) {}

  const NetworkPlan& plan() const { return plan_; }

  // The words of `batch` images.
  std::span<float> writable(int index) {
    const Buffer& buffer = plan_.buffers[static_cast<std::size_t>(index)];
    if (buffer.home == BufferHome::output) return outputs_[static_cast<std::size_t>(buffer.argument)];
    BURIN_CHECK(buffer.home == BufferHome::arena, "a step writes over the network's input {}", buffer.argument);
    return std::span(arena_).subspan(static_cast<std::size_t>(buffer.offset / kWordBytes), words(buffer));
  }
  std::span<const float> readable(int index) {
    const Buffer& buffer = plan_.buffers[static_cast<std::size_t>(index)];
    if (buffer.home == BufferHome::input) return inputs_[static_cast<std::size_t>(buffer.argument)];
    return writable(index);
  }

 private:
  std::size_t words(const Buffer& buffer) const {
    const std::int64_t groups = ceil_div(batch_, images_together(buffer.layout));
    return static_cast<std::size_t>(buffer.bytes / plan_.images(buffer) * groups / kWordBytes);
  }

  const NetworkPlan& plan_;
  int batch_;
  const std::vector<std::span<const float>>& inputs_;
  std::vector<std::vector<float>>& outputs_;
  std::vector<float> arena_;
};

}  // namespace

struct HostNetwork::Impl {
  Impl(const Package& package, int jobs) : package(package), jobs(jobs) {
    BURIN_CHECK(package.manifest.network, "a package of layers has no network to run");
  }

  void make(const std::string& symbol, HostStepKernel& made) const {
    made.kernel = find_kernel(package.manifest, symbol);
    BURIN_CHECK(made.kernel != nullptr, "a package with a kernel '{}' that is not there was read", symbol);
    if (!made.kernel->weights.empty()) made.weights = words_of(package.files.at(made.kernel->weights));
    made.host.emplace(bitcode_of(package, *made.kernel), symbol, made.kernel->form);
  }

  // Those of the program that have not been made yet. The first exception is thrown again.
  void make_kernels(const NetworkProgram& program) {
    std::vector<std::pair<const std::string, HostStepKernel>*> missing;
    for (const std::string& symbol : program.kernels) {
      const auto [place, is_new] = kernels.try_emplace(symbol);
      if (is_new) missing.push_back(&*place);
    }
    std::atomic<std::size_t> next = 0;
    std::atomic<bool> failed = false;
    std::exception_ptr failure;
    const auto work = [&] {
      for (std::size_t i = next++; i < missing.size() && !failed; i = next++) {
        try {
          make(missing[i]->first, missing[i]->second);
        } catch (...) {
          if (!failed.exchange(true)) failure = std::current_exception();
        }
      }
    };
    const std::size_t wanted =
        jobs > 0 ? static_cast<std::size_t>(jobs) : std::max(1U, std::thread::hardware_concurrency());
    std::vector<std::jthread> others;
    for (std::size_t i = 1; i < std::min(wanted, missing.size()); ++i) others.emplace_back(work);
    work();
    others.clear();  // joins
    if (!failed) return;
    kernels.clear();  // not all that are named there have been made
    std::rethrow_exception(failure);
  }

  void launch(const Step& step, HostStepKernel& kernel, int batch, Memory& memory) {
    // A kernel's pointers are where its tensors begin.
    const auto part = [&](auto words, const Place& place) {
      const std::int64_t begin = place.offset / kWordBytes;
      return words.subspan(static_cast<std::size_t>(begin),
                           static_cast<std::size_t>(words_until_end(memory.plan(), place, batch) - begin));
    };
    HostLaunchArguments arguments{.batch = batch,
                                  .input = {},
                                  .output = part(memory.writable(step.writes.buffer), step.writes),
                                  .weights = kernel.weights};
    for (const KernelTensor& tensor : kernel.kernel->form.tensors) {
      if (!tensor.exists() || (tensor.role != TensorRole::input && tensor.role != TensorRole::residual)) continue;
      const Place& place = step.reads[static_cast<std::size_t>(tensor.argument)];
      (tensor.role == TensorRole::input ? arguments.input : arguments.residual) =
          part(memory.readable(place.buffer), place);
    }
    kernel.host->run(arguments);
    kernel.host->release();
  }

  std::vector<std::vector<float>> run(const NetworkProgram& program, int batch,
                                      const std::vector<std::span<const float>>& inputs, const StepVisitor& visit) {
    const NetworkRecord& network = *package.manifest.network;
    const NetworkPlan& plan = program.plan;
    BURIN_CHECK(batch >= 1 && batch <= plan.batch, "{} images for a program of {}", batch, plan.batch);
    BURIN_CHECK(inputs.size() == network.inputs.size(), "{} inputs, not {}", inputs.size(), network.inputs.size());
    std::vector<std::vector<float>> outputs(network.outputs.size());
    for (const Buffer& buffer : plan.buffers) {
      if (buffer.home == BufferHome::arena) continue;
      const auto argument = static_cast<std::size_t>(buffer.argument);
      const auto words = static_cast<std::size_t>(buffer.bytes / plan.batch * batch / kWordBytes);
      if (buffer.home == BufferHome::output) {
        outputs[argument].assign(words, kPoison);
      } else {
        BURIN_CHECK(inputs[argument].size() == words, "network input {}: {} values, not {}", argument,
                    inputs[argument].size(), words);
      }
    }
    make_kernels(program);
    Memory memory(plan, batch, inputs, outputs);
    const auto values = [&](const Place& place) {
      return read_place(plan, place, batch, memory.readable(place.buffer));
    };
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
      const Step& step = plan.steps[i];
      StepValues seen;
      seen.step = static_cast<int>(i);
      if (visit) {
        for (const Place& read : step.reads) seen.reads.push_back(values(read));
      }
      launch(step, kernels.at(program.kernels[i]), batch, memory);
      if (!visit) continue;
      seen.output = values(step.writes);
      visit(seen);
    }
    return outputs;
  }

  const Package& package;
  int jobs;
  std::map<std::string, HostStepKernel> kernels;  // by symbol
};

HostNetwork::HostNetwork(const Package& package, int jobs) : impl_(std::make_unique<Impl>(package, jobs)) {}
HostNetwork::~HostNetwork() = default;
HostNetwork::HostNetwork(HostNetwork&&) noexcept = default;
HostNetwork& HostNetwork::operator=(HostNetwork&&) noexcept = default;

std::vector<std::vector<float>> HostNetwork::run(const NetworkProgram& program, int batch,
                                                 const std::vector<std::span<const float>>& inputs,
                                                 const StepVisitor& visit) {
  return impl_->run(program, batch, inputs, visit);
}

}  // namespace burin
