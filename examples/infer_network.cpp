// Runs the network of a burin package on a GPU with random input: prints its time and a checksum of each output.
//
//   infer_network MODEL.burin [BATCH]
//
// Needs the runtime library and its headers, nothing of CUDA and nothing of the compiler.
#include <burin/device_memory.hpp>
#include <burin/network.hpp>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <random>
#include <span>
#include <vector>

namespace {

constexpr int kTimedLaunches = 100;

std::vector<float> random_values(std::int64_t count) {
  std::mt19937 generator(1);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = uniform(generator);
  return values;
}

void infer(const char* path, int batch) {
  const burin::Device device = burin::Device::open(0);
  const burin::LoadedNetwork network(device, path);
  std::printf("%s\n", network.schedule(batch).text().c_str());

  // In NCHW, images one after the other; float32, or halves where the network was compiled with --io.
  burin::NetworkIo io;
  io.batch = batch;
  std::vector<burin::DeviceBuffer> inputs, outputs;
  for (const burin::NetworkTensor& input : network.inputs()) {
    const std::vector<std::byte> values = burin::to_elements(input.element, random_values(batch * input.elements()));
    io.inputs.push_back(inputs.emplace_back(device, std::span<const std::byte>(values)).data());
  }
  for (const burin::NetworkTensor& output : network.outputs()) {
    io.outputs.push_back(outputs.emplace_back(device, static_cast<std::size_t>(output.bytes(batch))).data());
  }

  const burin::Stream stream(device);
  const burin::NetworkRun run = network.bind(io);
  run.launch(stream);  // the first launch also brings the code to the device

  burin::Event begin(device), end(device);
  begin.record(stream);
  for (int i = 0; i < kTimedLaunches; ++i) run.launch(stream);
  end.record(stream);
  end.synchronize();
  std::printf("%s, batch %d: %.2f us per launch, %.2f MB of memory in between\n", device.info().name.c_str(), batch,
              end.microseconds_since(begin) / kTimedLaunches, static_cast<double>(run.arena_bytes()) / 1e6);

  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const burin::NetworkTensor output = network.outputs()[i];
    const std::vector<float> values = burin::from_elements(output.element, outputs[i].to_vector<std::byte>());
    std::printf("%s: checksum %.6g\n", output.name.c_str(), std::accumulate(values.begin(), values.end(), 0.0));
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) {
    std::fprintf(stderr, "usage: infer_network MODEL.burin [BATCH]\n");
    return 2;
  }
  try {
    infer(argv[1], argc > 2 ? std::atoi(argv[2]) : 1);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "infer_network: error: %s\n", error.what());
    return burin::error_code(error);
  }
  return 0;
}
