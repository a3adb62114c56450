// Compiles a pruned layer in this process, verifies it, and, where there is a GPU, runs it there.
//
//   compile_layer [SPARSITY]
//
// Needs burin's two libraries and their headers.
#include <burin/compiler.hpp>
#include <burin/device_memory.hpp>
#include <burin/runtime.hpp>
#include <cstdio>
#include <cstdlib>
#include <random>

namespace {

constexpr int kBatch = 8;

burin::PrunedLayer pruned_layer(double sparsity) {
  burin::PrunedLayer layer;
  layer.name = "conv";
  layer.in_channels = layer.out_channels = 64;
  layer.in_height = layer.in_width = 28;
  layer.kernel_height = layer.kernel_width = 3;
  layer.pad_top = layer.pad_bottom = layer.pad_left = layer.pad_right = 1;
  layer.activation = "relu";
  std::mt19937 generator(1);
  std::uniform_real_distribution<double> uniform(0, 1);
  for (int i = 0; i < layer.out_channels * layer.in_channels * 9; ++i) {
    const bool zero = uniform(generator) < sparsity;
    layer.weights.push_back(zero ? 0.0F : static_cast<float>(uniform(generator) - 0.5));
  }
  layer.bias.assign(static_cast<std::size_t>(layer.out_channels), 0.1F);
  return layer;
}

void run_on_gpu(const burin::Compiled& compiled) {
  const burin::Device device = burin::Device::open(0);
  const burin::LoadedPackage package(device, compiled.package, "conv");
  const burin::LoadedKernel kernel = package.kernel("conv", kBatch);
  burin::DeviceBuffer input(device, static_cast<std::size_t>(kernel.input_shape().tensor_bytes(kBatch)));
  input.fill(0);
  const burin::DeviceBuffer output(device, static_cast<std::size_t>(kernel.output_shape().tensor_bytes(kBatch)));
  const burin::Workspace workspace(device, kernel.workspace_size(kBatch));
  burin::Stream stream(device);
  kernel.launch(stream, {.input = input.data(), .output = output.data(), .batch = kBatch}, workspace);
  stream.synchronize();
  std::printf("ran on %s; an input of zeros gives %g\n", device.info().name.c_str(), output.to_vector<float>().front());
}

int run(double sparsity) {
  const burin::Model model = burin::Model::from_layers({pruned_layer(sparsity)}, "a layer in memory");
  const burin::Compiled compiled =
      burin::compile(model, {.batches = {1, kBatch}}, [](const burin::CompileState& state) {
        std::printf("%s\n", state.what.c_str());
        return true;  // false would cancel it
      });
  for (const std::string& note : compiled.notes) std::printf("note: %s\n", note.c_str());
  const burin::Verified verified = burin::verify(*compiled.package, model);
  for (const burin::VerifiedOutput& output : verified.outputs) {
    std::printf("%s, batch %d, on %s: %s, error %.3f of its tolerance\n", output.output.c_str(), output.batch,
                verified.device.c_str(), output.passed ? "right" : "WRONG", output.error_over_tolerance);
  }
  if (verified.device != "host") run_on_gpu(compiled);
  return verified.passed ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc > 1 ? std::atof(argv[1]) : 0.9);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "compile_layer: %s\n", error.what());
    return burin::error_code(error);
  }
}
