#include "compiler/measure/network_times.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "compiler/execute/executor.h"
#include "compiler/reference.h"
#include "runtime/bench/measure.h"
#include "runtime/elements.h"

namespace burin {
namespace {

constexpr std::uint64_t kNetworkSeed = 1;  // times do not depend on the values
constexpr int kFirstSamples = 3;
// A turn lasts about this long, so that a median of it is one of many launches.
constexpr double kMicrosecondsOfTurn = 4000;
constexpr int kLeastSamples = 5, kMostSamples = 40;

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

std::vector<double> GpuNetworkTimer::operator()(std::span<const TimedProgram> programs, int turns) {
  std::map<std::shared_ptr<const Package>, LoadedPackage> loaded;
  const Stream stream(device_);
  const InputValues values = [&](std::size_t, std::int64_t count) {
    std::vector<float>& known = values_[count];
    if (known.empty()) known = random_tensor(count, kNetworkSeed);
    return known;
  };
  std::vector<BoundNetwork> networks;
  for (const auto& [package, program] : programs) {
    if (!loaded.contains(package)) {
      const auto known = loaded_.find(package);
      loaded.emplace(package, known != loaded_.end()
                                  ? known->second
                                  : LoadedPackage(device_, package, package->manifest.source, tool_load_options()));
    }
    networks.push_back(
        bind_own_memory(device_, LoadedNetwork(loaded.at(package), program), program->batch, {}, values));
  }
  loaded_ = std::move(loaded);
  const auto launches_of = [](const BoundNetwork& network) {
    return [&network](CUstream_st* target) { network.run.launch(target); };
  };
  std::vector<int> samples;
  for (const BoundNetwork& network : networks) {
    const std::vector<double> first_us = time_in_a_row(device_, stream, launches_of(network), kFirstSamples);
    const double us = std::max(1.0, std::ranges::min(first_us));
    samples.push_back(std::clamp(static_cast<int>(kMicrosecondsOfTurn / us), kLeastSamples, kMostSamples));
  }
  std::vector<std::vector<double>> turns_us(networks.size());
  for (int turn = 0; turn < turns; ++turn) {
    for (std::size_t i = 0; i < networks.size(); ++i) {
      std::vector<double> us = time_in_a_row(device_, stream, launches_of(networks[i]), samples[i]);
      turns_us[i].push_back(summarize(std::move(us), 1).median_us);
    }
  }
  stream.synchronize();
  std::vector<double> medians;
  for (std::vector<double>& of_one : turns_us) medians.push_back(summarize(std::move(of_one), 1).median_us);
  return medians;
}

}  // namespace burin
