#include "test/runtime/called_sample.h"

#include <cmath>

#include "compiler/reference.h"
#include "ir/derive_form.h"
#include "ir/kernel_program.h"
#include "ir/layer_data.h"
#include "test/catch.h"
#include "test/runtime/sample_package.h"

using namespace burin;

namespace burin_test {
namespace {

const char* const kData = "layers/conv2.bin";

}  // namespace

CalledSample called_sample(const LibraryCall& call, const EditCalled& edit) {
  CalledSample made;
  made.package = sample_package({}, [&](std::vector<Kernel>& kernels) {
    kernels.erase(kernels.begin(), kernels.end() - 1);
    Kernel& kernel = kernels.front();
    Epilogue& epilogue = kernel.layer->shape.epilogue;
    epilogue.bias = true;
    epilogue.function = function_of(Activation::relu);
    TemplatePlan own = parse_template_plan(kernel.plan);
    if (edit) edit(kernel, own);
    (kernel.layer ? kernel.layer->data : kernel.called->data) = kData;
    const LibraryPlan plan{.call = call, .provider = own.template_name, .plan = print(own)};
    kernel.plan = print(plan);
    kernel.provider = provider_of(plan);
    derive_form(kernel);
  });
  Kernel& kernel = made.package->manifest.kernels.front();
  made.layer = {.name = kernel.op, .shape = kernel.called_shape(), .weights = {}, .bias = {}};
  made.layer.weights = random_tensor(made.layer.shape.weight_elements(), 3);
  if (made.layer.shape.epilogue.bias) made.layer.bias = random_tensor(made.layer.shape.out_channels, 4);
  (kernel.layer ? kernel.layer->nonzeros : kernel.linear->nonzeros) = made.layer.shape.weight_elements();
  made.package->files[kData] = encode_layer(made.layer);
  made.package->manifest.programs = {program_of(made.kernel(), 4)};
  return made;
}

void without_residual(Kernel& kernel, TemplatePlan& own) {
  own.residual() = KernelTensor{.role = TensorRole::residual, .argument = 1};
  if (kernel.layer) kernel.layer->shape.epilogue.residual = false;
}

CalledTensors::CalledTensors(const Device& device, const ConvShape& shape, int batch)
    : input(random_tensor(shape.input_elements() * batch, 1)),
      residual(random_tensor(shape.output_elements() * batch, 2)),
      x(device, std::span<const float>(input)),
      z(device, std::span<const float>(residual)),
      y(device, residual.size() * sizeof(float)),
      has_residual(shape.epilogue.residual) {
  if (!has_residual) residual.clear();
}

LaunchIo CalledTensors::io(int batch) const {
  return {.input = x.data(), .output = y.data(), .residual = has_residual ? z.data() : nullptr, .batch = batch};
}

void check_output(const CalledSample& of, const CalledTensors& tensors, int batch) {
  const std::vector<double> expected = reference_convolution(of.layer, batch, tensors.input, tensors.residual);
  const std::vector<float> made = tensors.y.to_vector<float>();
  REQUIRE(made.size() == expected.size());
  double worst = 0;
  for (std::size_t i = 0; i < made.size(); ++i) worst = std::max(worst, std::abs(made[i] - expected[i]));
  CHECK(worst < 1e-5);
}

BoundCall bind_called(FakeDriver& fake, const CalledSample& of, const LoadOptions& options, int batch) {
  const Device device = Device::open(0);
  const CalledTensors tensors(device, of.layer.shape, batch);
  const LoadedNetwork network(LoadedPackage(device, of.package, "sample", options));
  NetworkIo io{.inputs = {tensors.x.data()}, .outputs = {tensors.y.data()}, .batch = batch};
  if (tensors.has_residual) io.inputs.push_back(tensors.z.data());
  const NetworkRun run = network.bind(io);
  run.launch(nullptr);
  if (!run.library_call(0).empty()) check_output(of, tensors, batch);
  return {run.library_call(0), network.notes(), fake.graphs().back()};
}

}  // namespace burin_test
