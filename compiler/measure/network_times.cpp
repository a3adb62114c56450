#include "compiler/measure/network_times.h"

#include <memory>
#include <utility>

#include "compiler/execute/executor.h"
#include "compiler/reference.h"
#include "runtime/bench/measure.h"
#include "runtime/elements.h"

namespace burin {
namespace {

constexpr std::uint64_t kNetworkSeed = 1;  // times do not depend on the values
constexpr int kNetworkTurns = 7, kSamplesOfTurn = 15;

}  // namespace

BoundNetwork bind_own_memory(const Device& device, const LoadedNetwork& network, int batch,
                             const NetworkOptions& options, const InputValues& values) {
  std::vector<DeviceBuffer> tensors;
  NetworkIo io;
  io.batch = batch;
  for (const NetworkTensor& input : network.inputs(batch)) {
    const std::int64_t count = input.bytes(batch) / bytes_of(input.element);
    // Which of random values is where does not matter.
    const std::vector<float> given = values ? values(io.inputs.size(), count) : random_tensor(count, kNetworkSeed);
    tensors.emplace_back(device, std::span<const std::byte>(to_elements(input.element, given)));
    io.inputs.push_back(tensors.back().data<void>());
  }
  for (const NetworkTensor& output : network.outputs(batch)) {
    tensors.emplace_back(device, static_cast<std::size_t>(output.bytes(batch)));
    io.outputs.push_back(tensors.back().data<void>());
  }
  NetworkRun run = network.bind(io, options);
  return {std::move(tensors), std::move(run)};
}

std::vector<double> time_networks_in_turns(const Device& device, std::span<const Package* const> packages, int batch) {
  const Stream stream(device);
  std::vector<BoundNetwork> networks;
  for (const Package* package : packages) {
    // Not an owner: the package outlives what is loaded of it.
    const std::shared_ptr<const Package> shared(std::shared_ptr<void>(), package);
    const LoadedNetwork network(LoadedPackage(device, shared, package->manifest.source, tool_load_options()));
    networks.push_back(bind_own_memory(device, network, batch));
  }
  std::vector<std::vector<double>> turns(packages.size());
  for (int turn = 0; turn < kNetworkTurns; ++turn) {
    for (std::size_t i = 0; i < networks.size(); ++i) {
      const auto launch = [&](CUstream_st* target) { networks[i].run.launch(target); };
      std::vector<double> samples = time_in_a_row(device, stream, launch, kSamplesOfTurn);
      turns[i].push_back(summarize(std::move(samples), 1).median_us);
    }
  }
  stream.synchronize();
  std::vector<double> medians;
  for (std::vector<double>& of_one : turns) medians.push_back(summarize(std::move(of_one), 1).median_us);
  return medians;
}

}  // namespace burin
