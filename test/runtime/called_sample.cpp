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

// What is in memory of values in nchw.
std::vector<float> words_of(const TensorFormat& format, const std::vector<float>& values, int channels, int rows,
                            int cols) {
  return pack_words(format.element, from_nchw(format.layout, values, channels, rows, cols));
}

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

EditCalled in_format(const TensorFormat& format) {
  return [format](Kernel& kernel, TemplatePlan& own) {
    for (KernelTensor* tensor : {&own.input(), &own.residual(), &own.output()}) {
      if (!tensor->exists()) continue;
      tensor->element = format.element;
      tensor->layout = format.layout;
      tensor->image_words = tensor->run_words = image_words(format, {tensor->channels, tensor->rows, tensor->cols});
      tensor->alignment = words_together(format.layout) * kWordBytes;
    }
    kernel.precision = to_string(precision_of(format.element));
  };
}

CalledTensors::CalledTensors(const Device& device, const Kernel& kernel, int batch)
    : has_residual(kernel.called_shape().epilogue.residual) {
  const ConvShape shape = kernel.called_shape();
  const TensorFormat format = called_format(kernel.form);
  input = rounded(format.element, random_tensor(shape.input_elements() * batch, 1));
  residual = rounded(format.element, random_tensor(shape.output_elements() * batch, 2));
  const std::vector<float> read = words_of(format, input, shape.in_channels, shape.in_h, shape.in_w);
  const std::vector<float> added = words_of(format, residual, shape.out_channels, shape.out_h(), shape.out_w());
  x = DeviceBuffer(device, std::span<const float>(read));
  z = DeviceBuffer(device, std::span<const float>(added));
  y = DeviceBuffer(device, added.size() * sizeof(float));
  if (!has_residual) residual.clear();
}

LaunchIo CalledTensors::io(int batch) const {
  return {.input = x.data(), .output = y.data(), .residual = has_residual ? z.data() : nullptr, .batch = batch};
}

void check_output(const CalledSample& of, const CalledTensors& tensors, int batch) {
  const TensorFormat format = called_format(of.kernel().form);
  const ConvShape& shape = of.layer.shape;
  ConvLayer layer = of.layer;
  layer.weights = rounded(format.element, layer.weights);
  layer.bias = rounded(format.element, layer.bias);
  const std::vector<double> expected = reference_convolution(layer, batch, tensors.input, tensors.residual);
  const std::vector<float> values = unpack_words(format.element, tensors.y.to_vector<float>());
  CHECK_FALSE(nonzero_filling(format.layout, values, shape.out_channels, shape.out_h(), shape.out_w(), batch));
  const std::vector<float> made =
      to_nchw(format.layout, values, shape.out_channels, shape.out_h(), shape.out_w(), batch);
  REQUIRE(made.size() == expected.size());
  double worst = 0;
  for (std::size_t i = 0; i < made.size(); ++i) {
    worst = std::max(worst, std::abs(made[i] - expected[i]) / std::max(1.0, std::abs(expected[i])));
  }
  CHECK(worst < (format.element == ElementType::f32 ? 1e-5 : epsilon_of(format.element)));
}

BoundCall bind_called(FakeDriver& fake, const CalledSample& of, const LoadOptions& options, int batch) {
  const Device device = Device::open(0);
  const CalledTensors tensors(device, of.kernel(), batch);
  const LoadedNetwork network(LoadedPackage(device, of.package, "sample", options));
  NetworkIo io{.inputs = {tensors.x.data()}, .outputs = {tensors.y.data()}, .batch = batch};
  if (tensors.has_residual) io.inputs.push_back(tensors.z.data());
  const NetworkRun run = network.bind(io);
  run.launch(nullptr);
  if (!run.library_call(0).empty()) check_output(of, tensors, batch);
  return {run.library_call(0), network.notes(), fake.graphs().back()};
}

}  // namespace burin_test
