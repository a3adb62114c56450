#include "compiler/execute/network_executor.h"

#include <algorithm>

#include "compiler/execute/gpu_network.h"
#include "runtime/network_schedule.h"

namespace burin {
namespace {

class HostNetworkExecutor : public NetworkExecutor {
 public:
  HostNetworkExecutor(const Package& package, int jobs) : network_(package, jobs) {}

  std::string name() const override { return "host"; }
  NetworkTensors run(const NetworkProgram& program, int batch, const NetworkTensors& inputs,
                     const StepVisitor& visit) override {
    return network_.run(program, batch, {inputs.begin(), inputs.end()}, visit);
  }

 private:
  HostNetwork network_;
};

}  // namespace

std::unique_ptr<NetworkExecutor> make_network_executor(const DeviceChoice& choice, const Package& package, int jobs) {
  if (!choice.host) return make_gpu_network_executor(choice.ordinal, package);
  return std::make_unique<HostNetworkExecutor>(package, jobs);
}

const NetworkProgram& program_for(const NetworkRecord& network, int batch) {
  const auto fits = [batch](const NetworkProgram& program) { return program.plan.batch >= batch; };
  const auto found = std::ranges::find_if(network.programs, fits);  // ascending
  return found != network.programs.end() ? *found : network.programs.back();
}

std::int64_t elements(const NetworkArgument& argument) {
  std::int64_t result = 1;
  for (const std::int64_t extent : argument.shape) result *= extent;
  return result;
}

std::vector<float> pick_images(std::span<const float> tensor, int batch, const std::vector<int>& images) {
  const std::size_t size = tensor.size() / static_cast<std::size_t>(batch);
  std::vector<float> picked;
  picked.reserve(size * images.size());
  for (const int image : images) {
    const auto values = tensor.subspan(static_cast<std::size_t>(image) * size, size);
    picked.insert(picked.end(), values.begin(), values.end());
  }
  return picked;
}

NetworkTensors slice_images(const NetworkTensors& tensors, int batch, int first, int count) {
  NetworkTensors slices;
  for (const std::vector<float>& tensor : tensors) {
    const auto size = static_cast<std::ptrdiff_t>(tensor.size()) / batch;
    slices.emplace_back(tensor.begin() + first * size, tensor.begin() + (first + count) * size);
  }
  return slices;
}

NetworkTensors run_network(NetworkExecutor& executor, const NetworkRecord& network, int batch,
                           const NetworkTensors& inputs) {
  std::vector<int> batches;
  for (const NetworkProgram& program : network.programs) batches.push_back(program.plan.batch);
  NetworkTensors outputs(network.outputs.size());
  int first = 0;
  for (const NetworkPart& part : make_schedule(batches, batch).parts) {
    const NetworkTensors made = executor.run(program_for(network, part.program_batch), part.images,
                                             slice_images(inputs, batch, first, part.images));
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      outputs[i].insert(outputs[i].end(), made[i].begin(), made[i].end());
    }
    first += part.images;
  }
  return outputs;
}

}  // namespace burin
