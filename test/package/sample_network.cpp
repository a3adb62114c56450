#include "test/package/sample_network.h"

#include <algorithm>

#include "ir/kernel_program.h"
#include "test/package/sample_plans.h"

namespace burin_test {
namespace {

using namespace burin;

constexpr int kSide = 14;
constexpr std::int64_t kBytes = 4;  // of a value
constexpr std::int64_t kTensorBytes = kSampleTensorWords * kBytes, kConcatBytes = 2 * kTensorBytes;

void add_binaries(Package& package, Kernel& kernel) {
  const std::string base = "kernels/" + kernel.symbol;
  add_code(package, kernel, {.kind = BinaryKind::ptx, .arch = "sm_75", .path = base + ".ptx"}, ".version 8.0 of ");
  add_code(package, kernel, {.kind = BinaryKind::cubin, .arch = "sm_90", .path = base + ".sm_90.cubin"},
           "machine code of ");
}

void add_layer(Package& package, const std::string& layer, int in_channels, int batch) {
  Kernel& kernel = package.manifest.kernels.emplace_back();
  kernel.symbol = layer + "_b" + std::to_string(batch);
  kernel.op = layer;
  kernel.kind = "convolution";
  ConvShape& shape = kernel.layer.emplace().shape;
  shape.in_channels = in_channels;
  shape.out_channels = 16;
  shape.kernel_h = shape.kernel_w = 3;
  shape.pad = {1, 1, 1, 1};
  shape.in_h = shape.in_w = kSide;
  shape.epilogue.residual = layer == "right";
  kernel.layer->nonzeros = 100;
  kernel.source_hash = "0123456789abcdef";
  SamplePlan plan{.tile = {1, 7, 7}, .groups = 2, .splits = 2, .batch = batch};
  if (layer == "conv1") {
    plan.tile = {1, kSide, kSide};
    plan.staging = Staging::bulk;
  } else {
    plan.output_image_words = kConcatBytes / kBytes;
  }
  set_plan(kernel, sample_plan(shape, plan));
  add_binaries(package, kernel);
}

void add_operator(Package& package, const std::string& name, const std::string& kind, const TemplatePlan& plan) {
  Kernel& kernel = package.manifest.kernels.emplace_back();
  kernel.symbol = "operator_" + name;
  kernel.op = name;
  kernel.kind = kind;
  kernel.source_hash = "fedcba9876543210";
  set_plan(kernel, plan);
  if (const KernelTensor* weights = kernel.form.find(TensorRole::weights)) {
    kernel.weights = "weights/" + name;
    package.files[kernel.weights] = std::string(static_cast<std::size_t>(weights->run_words * kBytes), '\3');
  }
  add_binaries(package, kernel);
}

void add_operators(Package& package) {
  const std::map<std::string, float> no_function = {{"alpha", 0.0F}, {"beta", 0.0F}};

  TemplatePlan fc;
  fc.template_name = "linear";
  const int features = kConcatBytes / kBytes;
  fc.input() = flat_tensor(TensorRole::input, features, kWideAccessBytes);
  fc.output() = flat_tensor(TensorRole::output, kSampleFeatures);
  fc.weights() = flat_tensor(TensorRole::weights, (features + 1) * kSampleFeatures);
  fc.integers = {{"in_features", features}, {"out_features", kSampleFeatures},
                 {"row_words", features},   {"block_rows", 1},
                 {"has_bias", 1},           {"vector", 4},
                 {"half_values", 0},        {"function", 0}};
  fc.reals = no_function;
  fc.launch().tile_images = 8;
  fc.launch().tiles_per_image = kSampleFeatures;
  add_operator(package, "fc", "linear", fc);

  TemplatePlan add;
  add.template_name = "combine";
  add.input() = flat_tensor(TensorRole::input, kSampleFeatures);
  add.output() = flat_tensor(TensorRole::output, kSampleFeatures);
  add.residual() = flat_tensor(TensorRole::residual, kSampleFeatures);
  add.integers = {{"elements", kSampleFeatures},
                  {"combination", 0},
                  {"swapped", 0},
                  {"constant", 0},
                  {"vector", 1},
                  {"steps", 1},
                  {"function", 0}};
  for (int axis = 0; axis < 4; ++axis) {
    add.integers["other_extent" + std::to_string(axis)] = axis == 3 ? kSampleFeatures : 1;
    add.integers["other_step" + std::to_string(axis)] = axis == 3 ? 1 : 0;
  }
  add.reals = no_function;
  add_operator(package, "add", "add", add);

  TemplatePlan copy;
  copy.template_name = "copy";
  copy.input() = flat_tensor(TensorRole::input, kSampleTensorWords, kWideAccessBytes);
  copy.output() = flat_tensor(TensorRole::output, kSampleTensorWords, kWideAccessBytes);
  copy.integers = {{"elements", kSampleTensorWords},
                   {"vector", 4},
                   {"steps", 1},
                   {"flat", 1},
                   {"origin", 0},
                   {"in_axis", 0},
                   {"tile_in", 0},
                   {"tile_out", 0},
                   {"in_vector", 1},
                   {"out_vector", 1}};
  for (int axis = 0; axis < 6; ++axis) {
    const int extent = axis == 5 ? kSampleTensorWords : 1;
    const auto constant = [&](const std::string& name, int value) {
      copy.integers[name + std::to_string(axis)] = value;
    };
    constant("extent", extent);
    constant("in_extent", extent);
    constant("before", 0);
    constant("in_stride", axis == 5 ? 1 : 0);
    constant("out_stride", axis == 5 ? 1 : 0);
  }
  copy.reals = {{"copy_value", 0.0F}};
  copy.launch().tiles_per_image = 4;
  add_operator(package, "features", std::string(kCopyKind), copy);
}

Place whole_buffer(int buffer, std::int64_t bytes) { return {buffer, 0, bytes, bytes, 1, 0}; }

Program sample_program(int batch) {
  Program program;
  program.name = kNetworkName;
  program.batch = batch;
  std::int64_t arena = 0;
  const auto buffer = [&](const char* tensor, std::vector<std::int64_t> shape, BufferHome home, int argument) {
    Buffer added{.tensor = tensor, .shape = std::move(shape), .home = home, .argument = argument};
    if (home == BufferHome::arena) {
      added.offset = arena;
      arena += aligned_bytes(batch * added.elements() * kBytes);
    }
    program.buffers.push_back(std::move(added));
  };
  buffer("image", {8, kSide, kSide}, BufferHome::input, 0);
  buffer("shift", {kSampleFeatures}, BufferHome::input, 1);
  buffer("scores", {kSampleFeatures}, BufferHome::output, 0);
  buffer("features", {16, kSide, kSide}, BufferHome::output, 1);
  buffer("a", {16, kSide, kSide}, BufferHome::arena, -1);
  buffer("concat", {32, kSide, kSide}, BufferHome::arena, -1);
  buffer("t", {kSampleFeatures}, BufferHome::arena, -1);
  program.naive_bytes = arena;

  const Place a = whole_buffer(kA, kTensorBytes), t = whole_buffer(kT, kSampleFeatures * kBytes);
  const auto half = [](std::int64_t offset) { return Place{kConcat, offset, kConcatBytes, kTensorBytes, 1, 0}; };
  program.steps = {
      {"conv1", "convolution", 0, "a", {whole_buffer(kImage, kSampleImageWords * kBytes)}, a, {}},
      {"left", "convolution", 1, "left", {a}, half(0), {kConv1}},
      {"right", "convolution", 2, "right", {a, a}, half(kTensorBytes), {kConv1}},
      {"fc", "linear", 4, "t", {whole_buffer(kConcat, kConcatBytes)}, t, {kLeft, kRight}},
      {"add", "add", 5, "scores", {t, whole_buffer(kShift, kSampleFeatures * kBytes)}, t, {kFc}},
      {"features", std::string(kCopyStep), -1, "features", {a}, whole_buffer(kFeatures, kTensorBytes), {kConv1}}};
  program.steps[kAdd].writes.buffer = kScores;
  for (const int step : {kConv1, kLeft, kRight}) {
    program.steps[static_cast<std::size_t>(step)].kernel =
        program.steps[static_cast<std::size_t>(step)].name + "_b" + std::to_string(batch);
  }
  for (const int step : {kFc, kAdd, kCopy}) {
    program.steps[static_cast<std::size_t>(step)].kernel =
        "operator_" + program.steps[static_cast<std::size_t>(step)].name;
  }
  program.steps[kConv1].options = {{"conv_baked", 2.25}, {"conv_dense", 4, true}};
  complete(program);
  return program;
}

}  // namespace

Package network_package() {
  Package package;
  package.manifest.tool_version = "0.1.0";
  package.manifest.source = "model.onnx";
  for (const int batch : {2, 8}) {
    add_layer(package, "conv1", 8, batch);
    add_layer(package, "left", 16, batch);
    add_layer(package, "right", 16, batch);
  }
  add_operators(package);
  package.manifest.programs = {sample_program(2), sample_program(8)};
  return package;
}

Package loose_network_package() {
  Package package;
  package.manifest.tool_version = "0.1.0";
  package.manifest.source = "model.onnx";
  constexpr TensorFormat kPlain, kIn = {ElementType::f16, TensorLayout::nchw},
                                 kOut = {ElementType::bf16, TensorLayout::nchw};
  const auto image = [](TensorRole role, const TensorFormat& format) {
    KernelTensor tensor = image_tensor(role, 3, 3, 3, format.layout, format.element);
    tensor.alignment = format.word_bytes();
    return tensor;
  };
  const auto add = [&](const std::string& name, const TensorFormat& from, const TensorFormat& to) {
    TemplatePlan plan;
    plan.template_name = "convert";
    plan.input() = image(TensorRole::input, from);
    plan.output() = image(TensorRole::output, to);
    add_operator(package, name, "convert", plan);
  };
  add("first", kIn, kPlain);
  add("last", kPlain, kOut);
  Program& program = package.manifest.programs.emplace_back();
  program.name = kNetworkName;
  program.batch = 2;
  const auto buffer = [&](const char* tensor, BufferHome home, const TensorFormat& format) {
    const int argument = home == BufferHome::arena ? -1 : 0;
    program.buffers.push_back(
        {.tensor = tensor, .shape = {3, 3, 3}, .home = home, .argument = argument, .format = format});
  };
  buffer("image", BufferHome::input, kIn);
  buffer("scores", BufferHome::output, kOut);
  buffer("image.f32", BufferHome::arena, kPlain);
  const auto whole = [](int buffer, std::int64_t bytes) { return Place{buffer, 0, bytes, bytes, 1, 0}; };
  const Place plain = whole(2, 2 * kLooseBytes);
  program.steps = {{"first", "convert", 0, "image.f32", {whole(0, kLooseBytes)}, plain, {}},
                   {"last", "convert", 1, "scores", {plain}, whole(1, kLooseBytes), {0}}};
  program.steps[0].kernel = package.manifest.kernels[0].symbol;
  program.steps[1].kernel = package.manifest.kernels[1].symbol;
  program.naive_bytes = 512;
  complete(program);
  return package;
}

void add_layer_programs(Manifest& manifest) {
  for (const Kernel& kernel : manifest.kernels) {
    manifest.programs.push_back(program_of(kernel, std::max(1, kernel.planned_batch)));
  }
}

}  // namespace burin_test
