#include "test/package/sample_network.h"

namespace burin_test {
namespace {

using namespace burin;

constexpr int kSide = 14;
constexpr std::int64_t kBytes = 4;  // of a value
constexpr std::int64_t kTensorBytes = kSampleTensorWords * kBytes, kConcatBytes = 2 * kTensorBytes;

void add_code(Package& package, const std::string& symbol, std::vector<KernelBinary>& binaries) {
  const auto add = [&](BinaryKind kind, const std::string& arch, const std::string& ending, const std::string& text) {
    KernelBinary binary;
    binary.kind = kind;
    binary.arch = arch;
    binary.path = "kernels/" + symbol + ending;
    binary.bytes = static_cast<std::int64_t>(text.size());
    package.files[binary.path] = text;
    binaries.push_back(binary);
  };
  add(BinaryKind::ptx, "sm_75", ".ptx", ".version 8.0 of " + symbol + "\n");
  add(BinaryKind::cubin, "sm_90", ".sm_90.cubin", "machine code of " + symbol + "\n");
}

void add_layer(Package& package, const std::string& layer, int in_channels, int batch) {
  KernelRecord& record = package.manifest.kernels.emplace_back();
  record.symbol = layer + "_b" + std::to_string(batch);
  record.layer = layer;
  record.shape.in_channels = in_channels;
  record.shape.out_channels = 16;
  record.shape.kernel_h = record.shape.kernel_w = 3;
  record.shape.pad = {1, 1, 1, 1};
  record.shape.in_h = record.shape.in_w = kSide;
  record.nonzeros = 100;
  record.template_name = "conv_baked";
  record.precision = "fp32";
  record.plan = "template: conv_baked\n";
  record.plan_short = "tile 1x7x7";
  record.planned_batch = batch;
  record.source_hash = "0123456789abcdef";
  record.launch.threads = 64;
  record.launch.shared_bytes = 100'000;
  record.launch.slices = 2;
  record.launch.tiles_per_image = 4;
  record.launch.workspace_bytes_per_tile = 4096;
  record.launch.counters_per_tile = 2;
  record.launch.input_alignment = 16;
  if (layer != "conv1") record.launch.output_image_words = kConcatBytes / kBytes;
  record.shape.epilogue.residual = layer == "right";
  add_code(package, record.symbol, record.binaries);
}

OperatorTensor whole_tensor(std::int64_t words, int aligned) {
  return {.image_words = words, .offset = 0, .run_words = words, .runs = 1, .run_pitch = 0, .aligned = aligned};
}

OperatorRecord& add_operator(Package& package, const std::string& name, const std::string& kind,
                             const std::string& template_name) {
  OperatorRecord& record = package.manifest.operators.emplace_back();
  record.symbol = "operator_" + name;
  record.op = name;
  record.kind = kind;
  record.plan.template_name = template_name;
  record.source_hash = "fedcba9876543210";
  add_code(package, record.symbol, record.binaries);
  return record;
}

void add_operators(Package& package) {
  package.manifest.operators.reserve(3);
  const std::map<std::string, float> no_function = {{"alpha", 0.0F}, {"beta", 0.0F}};

  OperatorRecord& fc = add_operator(package, "fc", "linear", "linear");
  const int features = kConcatBytes / kBytes;
  fc.plan.input = whole_tensor(features, 4);
  fc.plan.output = whole_tensor(kSampleFeatures, 1);
  fc.plan.integers = {{"in_features", features}, {"out_features", kSampleFeatures},
                      {"row_words", features},   {"block_rows", 1},
                      {"has_bias", 1},           {"vector", 4},
                      {"half_values", 0},        {"function", 0}};
  fc.plan.reals = no_function;
  fc.plan.weight_words = (features + 1) * kSampleFeatures;
  fc.plan.block_images = 8;
  fc.plan.group_blocks = kSampleFeatures;
  fc.weights = "weights/fc";
  package.files[fc.weights] = std::string(static_cast<std::size_t>(fc.plan.weight_words * kBytes), '\3');

  OperatorRecord& add = add_operator(package, "add", "add", "combine");
  add.second = 1;
  add.plan.input = add.plan.second = add.plan.output = whole_tensor(kSampleFeatures, 1);
  add.plan.integers = {{"elements", kSampleFeatures},
                       {"plane", 1},
                       {"per_channel", 0},
                       {"multiply", 0},
                       {"vector", 1},
                       {"steps", 1},
                       {"function", 0}};
  add.plan.reals = no_function;

  OperatorRecord& copy = add_operator(package, "features", std::string(kCopyStep), "copy");
  copy.plan.input = copy.plan.output = whole_tensor(kSampleTensorWords, 4);
  copy.plan.integers = {{"elements", kSampleTensorWords}, {"vector", 4}, {"steps", 1}, {"flat", 1}};
  for (int axis = 0; axis < 6; ++axis) {
    const int extent = axis == 5 ? kSampleTensorWords : 1;
    const auto constant = [&](const std::string& name, int value) {
      copy.plan.integers[name + std::to_string(axis)] = value;
    };
    constant("extent", extent);
    constant("in_extent", extent);
    constant("before", 0);
    constant("in_stride", axis == 5 ? 1 : 0);
    constant("out_stride", axis == 5 ? 1 : 0);
  }
  copy.plan.reals = {{"copy_value", 0.0F}};
  copy.plan.group_blocks = 4;
}

Place whole_place(int buffer, std::int64_t bytes) { return {buffer, 0, bytes, bytes, 1, 0}; }

NetworkProgram sample_program(int batch) {
  NetworkProgram program;
  NetworkPlan& plan = program.plan;
  plan.batch = batch;
  std::int64_t arena = 0;
  const auto buffer = [&](const char* tensor, std::vector<std::int64_t> shape, BufferHome home, int argument, int first,
                          int last) {
    std::int64_t bytes = batch * kBytes;
    for (const std::int64_t extent : shape) bytes *= extent;
    const bool in_arena = home == BufferHome::arena;
    plan.buffers.push_back({tensor, std::move(shape), home, argument, ElementType::f32, TensorLayout::nchw, bytes,
                            in_arena ? arena : 0, first, last});
    if (in_arena) arena += aligned_bytes(bytes);
  };
  buffer("image", {8, kSide, kSide}, BufferHome::input, 0, kConv1, kConv1);
  buffer("shift", {kSampleFeatures}, BufferHome::input, 1, kAdd, kAdd);
  buffer("scores", {kSampleFeatures}, BufferHome::output, 0, kAdd, kAdd);
  buffer("features", {16, kSide, kSide}, BufferHome::output, 1, kCopy, kCopy);
  buffer("a", {16, kSide, kSide}, BufferHome::arena, -1, kConv1, kCopy);
  buffer("concat", {32, kSide, kSide}, BufferHome::arena, -1, kLeft, kFc);
  buffer("t", {kSampleFeatures}, BufferHome::arena, -1, kFc, kAdd);
  plan.arena_bytes = plan.naive_bytes = arena;

  const Place a = whole_place(kA, kTensorBytes), t = whole_place(kT, kSampleFeatures * kBytes);
  const auto half = [](std::int64_t offset) { return Place{kConcat, offset, kConcatBytes, kTensorBytes, 1, 0}; };
  plan.steps = {
      {"conv1", "convolution", 0, "a", {whole_place(kImage, kSampleImageWords * kBytes)}, a, {}},
      {"left", "convolution", 1, "left", {a}, half(0), {kConv1}},
      {"right", "convolution", 2, "right", {a, a}, half(kTensorBytes), {kConv1}},
      {"fc", "linear", 4, "t", {whole_place(kConcat, kConcatBytes)}, t, {kLeft, kRight}},
      {"add", "add", 5, "scores", {t, whole_place(kShift, kSampleFeatures * kBytes)}, t, {kFc}},
      {"features", std::string(kCopyStep), -1, "features", {a}, whole_place(kFeatures, kTensorBytes), {kConv1}}};
  plan.steps[kAdd].writes.buffer = kScores;
  const std::string ending = "_b" + std::to_string(batch);
  program.kernels = {"conv1" + ending, "left" + ending, "right" + ending,
                     "operator_fc",    "operator_add",  "operator_features"};
  program.options.resize(plan.steps.size());
  program.options[kConv1] = {{"conv_baked", 2.25}, {"conv_dense", 4}};
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
  package.manifest.network = NetworkRecord{{{"image", {8, kSide, kSide}}, {"shift", {kSampleFeatures}}},
                                           {{"scores", {kSampleFeatures}}, {"features", {16, kSide, kSide}}},
                                           {sample_program(2), sample_program(8)}};
  return package;
}

}  // namespace burin_test
