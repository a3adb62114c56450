// Runs one layer of a burin package on a GPU with random input: prints its time and a checksum.
//
//   infer MODEL.burin [LAYER [BATCH]]
//
// Needs the runtime library and its headers, nothing of CUDA and nothing of the compiler.
#include <burin/device_memory.hpp>
#include <burin/runtime.hpp>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

namespace {

constexpr int kTimedLaunches = 100;

// As the kernel's layout has them; what fills it up stays zero.
std::vector<float> random_values(const burin::ImageShape& shape, int batch) {
  std::mt19937 generator(1);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> values(static_cast<std::size_t>(shape.tensor_elements(batch)));
  for (int image = 0; image < batch; ++image) {
    for (int channel = 0; channel < shape.channels; ++channel) {
      for (int row = 0; row < shape.height; ++row) {
        for (int col = 0; col < shape.width; ++col) {
          values[static_cast<std::size_t>(shape.index(image, channel, row, col))] = uniform(generator);
        }
      }
    }
  }
  return values;
}

void infer(const char* path, const char* wanted_layer, int batch) {
  const burin::Device device = burin::Device::open(0);
  const burin::LoadedPackage package(device, path);
  const std::string layer = wanted_layer != nullptr ? wanted_layer : package.layers().at(0);

  const burin::LoadedKernel kernel = package.kernel(layer, batch);
  const burin::ImageShape in = kernel.input_shape(), out = kernel.output_shape();
  // As floats, halves or bfloat16s: what the package was compiled for.
  const std::vector<std::byte> values = burin::to_elements(in.element, random_values(in, batch));
  const burin::DeviceBuffer input(device, std::span<const std::byte>(values));
  const auto output_bytes = static_cast<std::size_t>(out.tensor_bytes(batch));
  const burin::DeviceBuffer output(device, output_bytes);
  burin::DeviceBuffer residual(device, kernel.needs_residual() ? output_bytes : 0);
  residual.fill(0);

  burin::Stream stream(device);
  const burin::Workspace workspace(device, kernel.workspace_size(batch));
  const burin::LaunchIo io{.input = input.data(), .output = output.data(), .residual = residual.data(), .batch = batch};
  kernel.launch(stream, io, workspace);  // the first launch also brings the code to the device

  burin::Event begin(device), end(device);
  begin.record(stream);
  for (int i = 0; i < kTimedLaunches; ++i) kernel.launch(stream, io, workspace);
  end.record(stream);
  end.synchronize();

  // The output lies as the kernel's layout has it; index() finds a value in any.
  const std::vector<float> result = burin::from_elements(out.element, output.to_vector<std::byte>());
  double sum = 0;
  for (int image = 0; image < batch; ++image) {
    for (int channel = 0; channel < out.channels; ++channel) {
      for (int row = 0; row < out.height; ++row) {
        for (int col = 0; col < out.width; ++col) {
          sum += result[static_cast<std::size_t>(out.index(image, channel, row, col))];
        }
      }
    }
  }
  std::printf("%s on %s, batch %d: %.2f us per launch, checksum %.6g\n", layer.c_str(), device.info().name.c_str(),
              batch, end.microseconds_since(begin) / kTimedLaunches, sum);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 4) {
    std::fprintf(stderr, "usage: infer MODEL.burin [LAYER [BATCH]]\n");
    return 2;
  }
  try {
    infer(argv[1], argc > 2 ? argv[2] : nullptr, argc > 3 ? std::atoi(argv[3]) : 1);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "infer: error: %s\n", error.what());
    return burin::error_code(error);
  }
  return 0;
}
