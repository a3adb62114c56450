// Whole networks against the fake driver: what each step is given, what waits for what, and what is refused.
#include <algorithm>
#include <functional>

#include "ir/program.h"
#include "runtime/burin/device_memory.hpp"
#include "runtime/burin/network.hpp"
#include "runtime/launch_plan.h"
#include "test/catch.h"
#include "test/package/sample_network.h"
#include "test/package/sample_plans.h"
#include "test/runtime/fake_driver.h"
#include "test/runtime/sample_package.h"
#include "test/thrown.h"

using namespace burin;
using namespace burin_test;
using burin_test::Contains;

namespace {

std::shared_ptr<Package> shared_package() { return std::make_shared<Package>(network_package()); }

// A network and memory for 32 images of its arguments.
struct NetworkSample {
  explicit NetworkSample(std::shared_ptr<Package> package = shared_package())
      : loaded(device, std::move(package), "sample") {}

  FakeDriver fake;
  Device device = Device::open(0);
  LoadedPackage loaded;
  LoadedNetwork network{loaded};
  DeviceBuffer image{device, 32 * kSampleImageWords * 4}, shift{device, 32 * kSampleFeatures * 4};
  DeviceBuffer scores{device, 32 * kSampleFeatures * 4}, features{device, 32 * kSampleTensorWords * 4};

  NetworkIo io(int batch) const { return {{image.data(), shift.data()}, {scores.data(), features.data()}, batch}; }
};

const std::string& symbol_of(const FakeLaunch& launch) { return launch.function->symbol; }

// Partial sums of left or right for an image: four tiles, four slices, eight channels, 64 threads.
constexpr std::int64_t kSplitBytes = 4 * 4 * 8 * 64 * 4;

const char* bytes_of(const void* pointer) { return static_cast<const char*>(pointer); }

// Whether one node comes behind the other, through any number of edges.
bool is_behind(const FakeGraph& graph, int node, int before) {
  return std::ranges::any_of(graph.edges, [&](const FakeEdge& edge) {
    return edge.to == node && (edge.from == before || is_behind(graph, edge.from, before));
  });
}

// How programs for these batches run so many images. `arena_bytes`: of tensors in between, which are for the batch.
NetworkSchedule schedule_of(const std::vector<int>& batches, int batch, std::int64_t arena_bytes = 256) {
  std::vector<Program> programs(batches.size());
  std::vector<const Program*> pointers;
  for (std::size_t i = 0; i < programs.size(); ++i) {
    programs[i].batch = batches[i];
    programs[i].arena_bytes = arena_bytes;
    pointers.push_back(&programs[i]);
  }
  return make_schedule(pointers, batch);
}

// The layers conv1 and conv2 in half precision, a program for each kernel. Those of conv1 have activity maps, and are
// given to `edit`.
std::shared_ptr<Package> half_layers(const std::function<void(Kernel&)>& edit = {}) {
  const std::shared_ptr<Package> package = half_sample_package(Precision::fp16, [&](std::vector<Kernel>& kernels) {
    for (Kernel& kernel : kernels) {
      if (kernel.provider != kBakedProvider) continue;
      edit_baked(kernel, [&](BakedPlan& plan) {
        plan.skips = ActivityMap{2, 14, 14};
        plan.marks = true;
      });
      if (edit) edit(kernel);
    }
  });
  add_layer_programs(package->manifest);
  return package;
}

// Addresses, which the fake driver does not follow.
void* address(std::uintptr_t gigabytes) { return reinterpret_cast<void*>(gigabytes << 30); }

// Two convolutions, one behind the other, for images of 28 words, or of as many for two images that share them: what
// comes next begins at byte 112. Both are one kernel, which takes multiples of `alignment` bytes.
std::shared_ptr<Package> small_images(int batch, int alignment, TensorFormat format = {}) {
  std::shared_ptr<Package> package = std::make_shared<Package>();
  package->manifest.tool_version = "0.1.0";
  package->manifest.source = "small.onnx";
  Kernel& kernel = package->manifest.kernels.emplace_back(sample_template_kernel("conv"));
  kernel.layer->shape = ConvShape{};
  kernel.layer->shape.in_h = 4;
  kernel.layer->shape.in_w = 7;
  kernel.layer->nonzeros = 1;
  if (format.element == ElementType::f16) kernel.precision = to_string(Precision::fp16);
  TemplatePlan plan = sample_template("conv_any", kernel.layer->shape);
  for (KernelTensor* tensor : {&plan.input(), &plan.output()}) {
    *tensor = image_tensor(tensor->role, 1, 4, 7, format.layout, format.element);
    tensor->alignment = alignment;
  }
  plan.launch().tile_images = format.images_together();
  set_plan(kernel, plan);
  add_code(*package, kernel, {.kind = BinaryKind::cubin, .arch = "sm_90", .path = "kernels/conv.cubin"}, "code of ");
  Program program;
  program.name = kNetworkName;
  program.batch = batch;
  const auto buffer = [&](const char* name, BufferHome home) {
    Buffer added{.tensor = name, .shape = {1, 4, 7}, .home = home, .format = format};
    if (home != BufferHome::arena) added.argument = 0;
    program.buffers.push_back(std::move(added));
  };
  buffer("x", BufferHome::input);
  buffer("y", BufferHome::output);
  buffer("t", BufferHome::arena);
  const Place x = {0, 0, 112, 112, 1, 0}, y = {1, 0, 112, 112, 1, 0}, t = {2, 0, 112, 112, 1, 0};
  program.steps = {{"conv", "convolution", 0, "t", {x}, t, {}}, {"again", "convolution", 1, "y", {t}, y, {0}}};
  for (Step& step : program.steps) step.kernel = kernel.symbol;
  complete(program);
  program.naive_bytes = program.arena_bytes;
  package->manifest.programs = {program};
  return package;
}

}  // namespace

TEST_CASE("network schedule: the next larger program, or several runs of the largest") {
  const auto text = [](int batch, const std::vector<int>& batches) { return schedule_of(batches, batch).text(); };
  CHECK(text(1, {1, 8, 32}) == "batch 1 runs as 1");
  CHECK(text(5, {1, 32}) == "batch 5 runs as 5 of 32");
  CHECK(text(8, {1, 8, 32}) == "batch 8 runs as 8");
  CHECK(text(9, {1, 8, 32}) == "batch 9 runs as 9 of 32");
  CHECK(text(32, {1, 8, 32}) == "batch 32 runs as 32");
  CHECK(text(40, {1, 8, 32}) == "batch 40 runs as 32 + 8");
  CHECK(text(40, {32}) == "batch 40 runs as 32 + 8 of 32");
  CHECK(text(64, {32}) == "batch 64 runs as 2 x 32");
  CHECK(text(100, {1, 32}) == "batch 100 runs as 3 x 32 + 4 of 32");
  CHECK(text(3, {1}) == "batch 3 runs as 3 x 1");
  for (int batch = 1; batch <= 200; ++batch) {
    const NetworkSchedule schedule = schedule_of({2, 7, 24}, batch);
    int images = 0;
    for (const NetworkPart& part : schedule.parts) {
      CHECK(part.images >= 1);
      CHECK(part.images <= part.program_batch);
      images += part.images;
    }
    CHECK(images == batch);
  }
  CHECK(BURIN_THROWN(usage, schedule_of({8}, 0)).has("batch 0 is not within 1..1048576"));
  CHECK(BURIN_THROWN(usage, schedule_of({8}, -3)).has("batch -3"));
  CHECK(BURIN_THROWN(usage, schedule_of({8}, (1 << 20) + 1)).has("1048577"));
}

TEST_CASE("network schedule: programs with nothing in between run any number at once") {
  const auto text = [](int batch, const std::vector<int>& batches) { return schedule_of(batches, batch, 0).text(); };
  CHECK(text(1, {1, 8, 32}) == "batch 1 runs as 1");
  CHECK(text(5, {1, 8, 32}) == "batch 5 runs as 5 of 1");
  CHECK(text(8, {1, 8, 32}) == "batch 8 runs as 8");
  CHECK(text(31, {1, 8, 32}) == "batch 31 runs as 31 of 8");
  CHECK(text(40, {1, 8, 32}) == "batch 40 runs as 40 of 32");
  CHECK(text(3, {8, 32}) == "batch 3 runs as 3 of 8");
  CHECK(text(1 << 20, {1}) == "batch 1048576 runs as 1048576 of 1");
  CHECK(BURIN_THROWN(usage, schedule_of({8}, 0, 0)).has("batch 0 is not within 1..1048576"));
  CHECK(BURIN_THROWN(usage, schedule_of({8}, (1 << 20) + 1, 0)).has("1048577"));
}

TEST_CASE("network scratch: partial sums are shared by steps in an order, counters never") {
  const Program program = network_package().manifest.programs[0];
  std::vector<WorkspaceSize> sizes(kSampleSteps);
  sizes[kConv1] = {256, 1000};
  sizes[kLeft] = {512, 3000};
  sizes[kRight] = {256, 2000};
  const ScratchLayout layout = lay_out_scratch(program, sizes);
  CHECK(layout.steps[kConv1].counters == 0);
  CHECK(layout.steps[kLeft].counters == 256);
  CHECK(layout.steps[kRight].counters == 768);
  CHECK(layout.total.counter_bytes == 1024);
  CHECK(layout.steps[kConv1].partials == 0);
  CHECK(layout.steps[kLeft].partials == 0);
  CHECK(layout.steps[kRight].partials == 3072);  // beside left's, which may run at the same time
  CHECK(layout.total.partial_bytes == 3072 + 2048);
  CHECK(lay_out_scratch(program, std::vector<WorkspaceSize>(kSampleSteps)).total.total() == 0);
}

TEST_CASE("network: what a package says of it") {
  NetworkSample sample;
  const LoadedNetwork& network = sample.network;
  REQUIRE(network.inputs().size() == 2);
  CHECK(network.inputs()[0].name == "image");
  CHECK(network.inputs()[0].shape == std::vector<std::int64_t>{8, 14, 14});
  CHECK(network.inputs()[0].elements() == kSampleImageWords);
  CHECK(network.inputs()[0].bytes(3) == 3 * kSampleImageWords * 4);
  CHECK(network.outputs()[0].name == "scores");
  CHECK(network.outputs()[1].elements() == kSampleTensorWords);
  for (const std::vector<NetworkTensor>& tensors : {network.inputs(), network.outputs()}) {
    for (const NetworkTensor& tensor : tensors) {
      INFO(tensor.name);
      CHECK(tensor.is_plain());
      CHECK(tensor.images_together == 1);
      CHECK(tensor.piece_bytes == tensor.elements() * 4);
    }
  }
  CHECK(network.batches() == std::vector<int>{2, 8});
  CHECK(network.schedule(13).text() == "batch 13 runs as 8 + 5 of 8");
}

TEST_CASE("network: which of a package's programs") {
  FakeDriver fake;
  const Device device = Device::open(0);
  const LoadedPackage kernels(device, sample_package(), "kernels.burin");
  const std::string none = "kernels.burin holds no programs; launch its kernels one by one";
  CHECK(BURIN_THROWN(usage, LoadedNetwork(kernels)).text == none);
  CHECK(BURIN_THROWN(usage, LoadedNetwork(kernels, "conv1")).text == none);
  const LoadedPackage layers(device, half_layers(), "layers.burin");
  CHECK(BURIN_THROWN(usage, LoadedNetwork(layers)).text ==
        "layers.burin holds 2 layers and no network: say which of them, or launch its kernels one by one");
  CHECK(BURIN_THROWN(usage, LoadedNetwork(layers, "conv3")).text ==
        "layers.burin has no program 'conv3'; it has conv1, conv2");
  CHECK(LoadedNetwork(layers, "conv1").batches() == std::vector<int>{1, 8, 32});
  CHECK(LoadedNetwork(layers, "conv2").batches() == std::vector<int>{4});
  // One of several batches is no question of names.
  const LoadedPackage network(device, shared_package(), "network.burin");
  CHECK(LoadedNetwork(network, "network").batches() == LoadedNetwork(network).batches());
}

TEST_CASE("network: a layer, its halves and its activity maps") {
  FakeDriver fake;
  const Device device = Device::open(0);
  const LoadedNetwork layer(LoadedPackage(device, half_layers(), "layers.burin"), "conv1");
  const std::vector<NetworkTensor> inputs = layer.inputs(), outputs = layer.outputs();
  REQUIRE(inputs.size() == 2);
  REQUIRE(outputs.size() == 2);
  const NetworkTensor &input = inputs[0], &input_map = inputs[1], &output_map = outputs[1];
  CHECK(input.name == "conv1.input");
  CHECK(input.element == Element::f16);
  CHECK(input.channels_together == 1);
  CHECK(input.images_together == 2);
  CHECK_FALSE(input.is_plain());
  CHECK_FALSE(input.is_map);
  CHECK(input.elements() == kSampleImageWords);
  CHECK(input.piece_bytes == kSampleImageWords * 4);  // two images
  CHECK(input.bytes(3) == 2 * kSampleImageWords * 4);
  CHECK(input_map.is_map);
  CHECK_FALSE(input_map.is_plain());
  CHECK(input_map.shape == std::vector<std::int64_t>{8, 14, 14});
  CHECK(input_map.images_together == 2);
  CHECK(input_map.piece_bytes == 8);  // one cell of eight channels
  CHECK(input_map.bytes(3) == 16);
  CHECK(output_map.is_map);
  CHECK(output_map.piece_bytes == 4 * 16);  // the kernel's tiles are quarters of an image

  const NetworkRun run = layer.bind({{address(1), address(2)}, {address(3), address(4)}, 21});
  CHECK(run.schedule().text() == "batch 21 runs as 21 of 8");
  CHECK(run.arena_bytes() == 0);
  CHECK(run.step(0).name == "conv1");
  const std::vector<FakeLaunch> nodes = fake.graphs().front().nodes;
  REQUIRE(nodes.size() == 1);
  CHECK(symbol_of(nodes[0]) == "conv1_b8");
  CHECK(nodes[0].batch == 21);
  CHECK(nodes[0].input == address(1));
  CHECK(nodes[0].input_activity == address(2));
  CHECK(nodes[0].output == address(3));
  CHECK(nodes[0].output_activity == address(4));
  CHECK(run.address(0, *run.step(0).input_map) == address(2));
}

TEST_CASE("network: the activity maps of a layer are those of the kernel that runs so many images") {
  // conv1 has kernels for 1, 8 and 32 images; the last one has other cells.
  const std::shared_ptr<Package> package = half_layers([](Kernel& kernel) {
    if (kernel.planned_batch != 32) return;
    set_plan(kernel, sample_plan(kernel.layer->shape, {.tile = {1, 14, 7},
                                                       .precision = Precision::fp16,
                                                       .batch = 32,
                                                       .skips = ActivityMap{4, 7, 14},
                                                       .marks = true}));
  });
  REQUIRE(verify(package->manifest) == std::vector<std::string>{});
  FakeDriver fake;
  const LoadedNetwork layer(LoadedPackage(Device::open(0), package, "layers.burin"), "conv1");
  const auto input_map = [&](int batch) { return layer.inputs(batch).at(1); };
  const auto output_map = [&](int batch) { return layer.outputs(batch).at(1); };
  for (const int batch : {1, 7, 8, 31}) {
    INFO(batch);
    CHECK(layer.schedule(batch).parts.front().program_batch < 32);
    CHECK(input_map(batch).images_together == 2);
    CHECK(input_map(batch).piece_bytes == 8);  // one cell of eight channels
    CHECK(output_map(batch).piece_bytes == 4 * 16);
  }
  for (const int batch : {32, 33, 1000}) {
    INFO(batch);
    CHECK(layer.schedule(batch).parts.front().program_batch == 32);
    CHECK(input_map(batch).images_together == 4);
    CHECK(input_map(batch).piece_bytes == 2 * 8);  // the halves of four images
    CHECK(output_map(batch).piece_bytes == 2 * 16);
  }
  CHECK(input_map(33).bytes(33) == 9 * 2 * 8);
  // All else is the same for any batch.
  CHECK(layer.inputs().at(1).piece_bytes == input_map(1).piece_bytes);
  for (const int batch : {1, 32}) {
    INFO(batch);
    CHECK(input_map(batch).name == "conv1.input.activity");
    CHECK(input_map(batch).shape == std::vector<std::int64_t>{8, 14, 14});
    CHECK(layer.inputs(batch).at(0).piece_bytes == kSampleImageWords * 4);
  }
  // Pointers may lie side by side: a launch takes as many bytes as the batch says.
  char* const maps = static_cast<char*>(address(2));
  const auto overlap = [&](int batch, std::int64_t bytes) {
    const NetworkIo io = {{address(1), maps}, {address(3), maps + bytes}, batch};
    const auto thrown = thrown_by([&] { layer.bind(io); });
    return thrown ? thrown->text : "no error";
  };
  CHECK(overlap(8, 4 * 8) == "no error");
  CHECK(overlap(8, 4 * 8 - 1)
            .starts_with(
                "output 'conv1.output.activity' and input 'conv1.input.activity' overlap at batch 8: 256 bytes at 0x"));
  CHECK(overlap(32, 8 * 2 * 8) == "no error");
  CHECK(
      overlap(32, 8 * 2 * 8 - 1)
          .starts_with(
              "output 'conv1.output.activity' and input 'conv1.input.activity' overlap at batch 32: 512 bytes at 0x"));
}

TEST_CASE("network: a map between two steps, and launches without one") {
  // conv1 marks what left, which skips zeros, reads; right has a kernel for maps as well, and is given none.
  const std::shared_ptr<Package> package = shared_package();
  for (Kernel& kernel : package->manifest.kernels) {
    if (kernel.op == "conv1") edit_baked(kernel, [](BakedPlan& plan) { plan.marks = true; });
    if (kernel.op != "left" && kernel.op != "right") continue;
    edit_baked(kernel, [](BakedPlan& plan) { plan.skips = ActivityMap{1, 14, 14}; });
  }
  for (Kernel& kernel : package->manifest.kernels) {  // their parameters are others now
    for (KernelBinary& binary : std::exchange(kernel.binaries, {})) {
      add_code(*package, kernel, std::move(binary), "code of ");
    }
  }
  for (Program& program : package->manifest.programs) {
    const std::int64_t offset = program.arena_bytes;
    program.buffers.push_back(
        {.tensor = "a.activity", .shape = {16, 14, 14}, .map = ActivityMap{1, 14, 14}, .offset = offset});
    program.naive_bytes += 256;
    program.steps[kConv1].output_map = program.steps[kLeft].input_map = Place{7, 0, 16, 16, 1, 0};
    complete(program);
  }
  REQUIRE(verify(package->manifest) == std::vector<std::string>{});
  NetworkSample sample(package);
  const NetworkRun run = sample.network.bind(sample.io(8));
  const std::vector<FakeLaunch> nodes = sample.fake.graphs().front().nodes;
  const char* const arena = bytes_of(nodes[kConv1].output);
  CHECK(run.arena_bytes() == 8 * 3 * kSampleTensorWords * 4 + 512 + 256);
  CHECK(nodes[kConv1].input_activity == nullptr);
  CHECK(bytes_of(nodes[kConv1].output_activity) == arena + run.arena_bytes() - 256);
  CHECK(nodes[kLeft].input_activity == nodes[kConv1].output_activity);
  CHECK(nodes[kLeft].output_activity == nullptr);
  CHECK(nodes[kRight].input_activity == nullptr);
}

TEST_CASE("network: the pointers of each step") {
  NetworkSample sample;
  const NetworkRun run = sample.network.bind(sample.io(8));
  const std::vector<FakeGraph> graphs = sample.fake.graphs();
  REQUIRE(graphs.size() == 1);
  const std::vector<FakeLaunch>& nodes = graphs[0].nodes;
  REQUIRE(nodes.size() == kSampleSteps);
  for (const FakeLaunch& node : nodes) CHECK(node.batch == 8);

  const char* a = bytes_of(nodes[kConv1].output);
  const char* concat = bytes_of(nodes[kLeft].output);
  const char* t = bytes_of(nodes[kFc].output);
  for (const int step : {kConv1, kLeft, kRight}) CHECK(nodes[static_cast<std::size_t>(step)].weights == nullptr);
  for (const int step : {kFc, kAdd, kCopy}) {
    CHECK(nodes[static_cast<std::size_t>(step)].partials == nullptr);
    CHECK(nodes[static_cast<std::size_t>(step)].counters == nullptr);
  }
  CHECK(symbol_of(nodes[kConv1]) == "conv1_b8");
  CHECK(nodes[kConv1].input == sample.image.data());
  CHECK(nodes[kConv1].residual == nullptr);
  CHECK(nodes[kLeft].input == a);
  CHECK(nodes[kRight].input == a);
  CHECK(nodes[kRight].residual == a);
  CHECK(bytes_of(nodes[kRight].output) == concat + kSampleTensorWords * 4);
  CHECK(nodes[kFc].input == concat);
  CHECK(nodes[kFc].residual == nullptr);
  CHECK(nodes[kAdd].input == t);
  CHECK(nodes[kAdd].residual == sample.shift.data());
  CHECK(nodes[kAdd].weights == nullptr);  // it has none
  CHECK(nodes[kAdd].output == sample.scores.data());
  CHECK(nodes[kCopy].input == a);
  CHECK(nodes[kCopy].output == sample.features.data());
  CHECK(concat == a + 8 * kSampleTensorWords * 4);  // a multiple of 256
  CHECK(run.arena_bytes() == 8 * 3 * kSampleTensorWords * 4 + 512);

  // The weights are on the device, as the package has them.
  REQUIRE(nodes[kFc].weights != nullptr);
  CHECK(bytes_of(nodes[kFc].weights)[0] == 3);
  CHECK(bytes_of(nodes[kFc].weights)[(6272 + 1) * 10 * 4 - 1] == 3);
  CHECK(sample.network.weight_bytes() == (6272 + 1) * 10 * 4);
}

TEST_CASE("network: grids, shared memory and scratch") {
  NetworkSample sample;
  const NetworkRun run = sample.network.bind(sample.io(8));
  const std::vector<FakeLaunch> nodes = sample.fake.graphs().front().nodes;
  using Geometry = std::array<unsigned, 6>;
  CHECK(nodes[kConv1].geometry == Geometry{8, 4, 1, 224, 1, 1});
  CHECK(nodes[kConv1].shared_bytes == 128 + 16 * 4 + 2 * (2 * 196 + 16) * 4);  // whole images, margins between them
  CHECK(nodes[kLeft].geometry == Geometry{32, 4, 1, 64, 1, 1});
  CHECK(nodes[kLeft].shared_bytes == 128 + 2 * 2 * 9 * 9 * 4);
  CHECK(nodes[kFc].geometry == Geometry{10, 1, 1, 256, 1, 1});  // 8 images a block
  CHECK(nodes[kCopy].geometry == Geometry{32, 1, 1, 256, 1, 1});
  CHECK(nodes[kCopy].shared_bytes == 0);
  // left and right may run at the same time; conv1 is behind neither.
  CHECK(nodes[kLeft].partials != nodes[kRight].partials);
  CHECK(std::abs(bytes_of(nodes[kLeft].partials) - bytes_of(nodes[kRight].partials)) == 8 * kSplitBytes);
  CHECK((nodes[kConv1].partials == nodes[kLeft].partials || nodes[kConv1].partials == nodes[kRight].partials));
  CHECK(run.scratch_bytes() == 3 * 256 + 2 * 8 * kSplitBytes);
  std::vector<const void*> counters = {nodes[kConv1].counters, nodes[kLeft].counters, nodes[kRight].counters};
  for (const void* counter : counters) {
    CHECK(std::ranges::count(counters, counter) == 1);
    CHECK(std::all_of(bytes_of(counter), bytes_of(counter) + 256, [](char byte) { return byte == 0; }));
  }
}

TEST_CASE("network: steps wait for what the plan says, and for nothing else") {
  NetworkSample sample;
  sample.network.bind(sample.io(8), {.programmatic = false});
  const FakeGraph graph = sample.fake.graphs().front();
  const std::vector<FakeEdge> wanted = {{kConv1, kLeft}, {kConv1, kRight}, {kLeft, kFc},
                                        {kRight, kFc},   {kFc, kAdd},      {kConv1, kCopy}};
  CHECK(graph.edges == wanted);
}

TEST_CASE("network: a batch that is no compiled one takes the next larger program") {
  NetworkSample sample;
  const NetworkRun run = sample.network.bind(sample.io(5));
  CHECK(run.schedule().text() == "batch 5 runs as 5 of 8");
  const FakeGraph graph = sample.fake.graphs().front();
  REQUIRE(graph.nodes.size() == kSampleSteps);
  for (const FakeLaunch& node : graph.nodes) CHECK(node.batch == 5);
  CHECK(symbol_of(graph.nodes[kConv1]) == "conv1_b8");
  CHECK(graph.nodes[kConv1].geometry[0] == 5);
  CHECK(graph.nodes[kLeft].geometry[0] == 5 * 4);
  CHECK(run.arena_bytes() == 8 * 3 * kSampleTensorWords * 4 + 512);
  CHECK(run.scratch_bytes() == 3 * 256 + 2 * 5 * kSplitBytes);  // of 5 images alone
}

TEST_CASE("network: several runs in one graph, one after the other") {
  NetworkSample sample;
  const NetworkRun run = sample.network.bind(sample.io(18));  // 8, 8, 2
  CHECK(run.schedule().text() == "batch 18 runs as 2 x 8 + 2");
  const FakeGraph graph = sample.fake.graphs().front();
  REQUIRE(graph.nodes.size() == 3 * kSampleSteps);
  REQUIRE(run.steps() == 3 * kSampleSteps);
  const std::vector<int> first_images = {0, 8, 16};
  const std::vector<int> images = {8, 8, 2};
  for (int part = 0; part < 3; ++part) {
    const auto node = [&](int step) { return graph.nodes[static_cast<std::size_t>(part * kSampleSteps + step)]; };
    const int first = first_images[static_cast<std::size_t>(part)];
    for (int step = 0; step < kSampleSteps; ++step) {
      CHECK(node(step).batch == images[static_cast<std::size_t>(part)]);
      CHECK(run.part_of(part * kSampleSteps + step) == part);
    }
    CHECK(bytes_of(node(kConv1).input) == bytes_of(sample.image.data()) + first * kSampleImageWords * 4);
    CHECK(bytes_of(node(kAdd).residual) == bytes_of(sample.shift.data()) + first * kSampleFeatures * 4);
    CHECK(bytes_of(node(kAdd).output) == bytes_of(sample.scores.data()) + first * kSampleFeatures * 4);
    CHECK(bytes_of(node(kCopy).output) == bytes_of(sample.features.data()) + first * kSampleTensorWords * 4);
    CHECK(symbol_of(node(kConv1)) == (part == 2 ? "conv1_b2" : "conv1_b8"));
    CHECK(node(kConv1).output == graph.nodes[kConv1].output);  // the same arena
  }
  // Programs have counters of their own; parts of one program do not.
  const auto counters = [&](int part) { return graph.nodes[static_cast<std::size_t>(part * kSampleSteps)].counters; };
  CHECK(counters(0) == counters(1));
  CHECK(counters(0) != counters(2));
  // Every step of a run is behind every step of the one before.
  for (int part = 1; part < 3; ++part) {
    for (int step = 0; step < kSampleSteps; ++step) {
      for (int before = 0; before < kSampleSteps; ++before) {
        CHECK(is_behind(graph, part * kSampleSteps + step, (part - 1) * kSampleSteps + before));
      }
    }
  }
}

TEST_CASE("network: a launch is one call, and allocates nothing on the device") {
  NetworkSample sample;
  const NetworkRun run = sample.network.bind(sample.io(8));
  const Stream stream(sample.device);
  const std::size_t allocations = sample.fake.allocations().size();
  const int calls = sample.fake.calls();
  run.launch(stream);
  run.launch(stream);
  CHECK(sample.fake.calls_of("cuGraphLaunch") == 2);
  CHECK(sample.fake.calls_of("cuGraphUpload") == 1);
  CHECK(sample.fake.allocations().size() == allocations);
  CHECK(sample.fake.calls() - calls <= 2 * 4);  // with the context
  CHECK(stream.handle()->clock_us == 2 * kSampleSteps * sample.fake.microseconds_per_launch);
  CHECK(sample.fake.launches().empty());
}

TEST_CASE("network: kernels are loaded for the batch that is bound, weights once") {
  NetworkSample sample;
  CHECK(sample.fake.loaded_code().empty());
  const NetworkRun eight = sample.network.bind(sample.io(8));
  CHECK(sample.fake.loaded_code().size() == kSampleSteps);
  const auto weights = sample.fake.graphs().front().nodes[kFc].weights;
  const NetworkRun two = sample.network.bind(sample.io(2));
  CHECK(sample.fake.loaded_code().size() == kSampleSteps + 3);  // the convolutions' for 2
  const FakeGraph graph = sample.fake.graphs().back();
  CHECK(graph.nodes[kFc].weights == weights);
  CHECK(graph.nodes[kConv1].output != sample.fake.graphs().front().nodes[kConv1].output);  // an arena of its own
  CHECK(two.arena_bytes() < eight.arena_bytes());
  const LoadedPackage eager(sample.device, shared_package(), "eager", {.eager = true});
  CHECK(sample.fake.loaded_code().size() == kSampleSteps + 3 + 9);
}

TEST_CASE("network: steps for tools") {
  NetworkSample sample;
  const NetworkRun run = sample.network.bind(sample.io(11));  // 8 + 3 of 8
  CHECK(run.steps() == 2 * kSampleSteps);
  CHECK(run.step(kFc).name == "fc");
  CHECK(run.step(kSampleSteps + kCopy).kind == kCopyStep);
  CHECK(run.step(kLeft).kernel == "left_b8");
  CHECK(run.program_of(kLeft).batch == 8);
  CHECK(run.part_of(kSampleSteps + kFc) == 1);
  const FakeGraph graph = sample.fake.graphs().front();
  const auto output = [&](int i) { return run.address(i, run.step(i).writes); };
  for (int i = 0; i < run.steps(); ++i) {
    INFO(i);
    CHECK(output(i) == graph.nodes[static_cast<std::size_t>(i)].output);
  }
  CHECK(run.address(kAdd, run.step(kAdd).reads[1]) == sample.shift.data());
  CHECK(BURIN_THROWN(usage, run.step(12)).has("step 12 is none of the 12 of this run"));
  CHECK(BURIN_THROWN(usage, run.launch_step(-1, nullptr)).has("step -1"));
  CHECK(BURIN_THROWN(usage, run.address(0, Place{7})).has("buffer 7 is none of the 7"));
}

TEST_CASE("network: one step by itself is the launch that the graph has") {
  NetworkSample sample;
  const NetworkRun run = sample.network.bind(sample.io(5));
  const Stream stream(sample.device);
  for (int i = 0; i < run.steps(); ++i) run.launch_step(i, stream);
  const std::vector<FakeLaunch> launches = sample.fake.launches();
  const std::vector<FakeLaunch> nodes = sample.fake.graphs().front().nodes;
  REQUIRE(launches.size() == nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    INFO(i);
    CHECK(launches[i].function == nodes[i].function);
    CHECK(launches[i].geometry == nodes[i].geometry);
    CHECK(launches[i].shared_bytes == nodes[i].shared_bytes);
    CHECK(launches[i].stream == stream.handle());
    CHECK(launches[i].input == nodes[i].input);
    CHECK(launches[i].output == nodes[i].output);
    CHECK(launches[i].residual == nodes[i].residual);
    CHECK(launches[i].weights == nodes[i].weights);
    CHECK(launches[i].partials == nodes[i].partials);
    CHECK(launches[i].counters == nodes[i].counters);
    CHECK(launches[i].batch == nodes[i].batch);
  }
}

TEST_CASE("network: programmatic launches are edges of that kind") {
  NetworkSample sample;
  sample.network.bind(sample.io(18));
  const FakeGraph graph = sample.fake.graphs().front();
  CHECK(sample.fake.calls_of("cuGraphAddDependencies") == 0);
  CHECK(graph.edges.size() > 3 * 6);
  CHECK(std::ranges::all_of(graph.edges, &FakeEdge::programmatic));
  sample.network.bind(sample.io(18), {.programmatic = false});
  const FakeGraph plain = sample.fake.graphs().back();
  CHECK(plain.edges.size() == graph.edges.size());
  CHECK(std::ranges::none_of(plain.edges, &FakeEdge::programmatic));
}

TEST_CASE("network: code that cannot await its launch is behind whole edges") {
  // fc has PTX for sm_75 alone: it is compiled for the device, and still does not wait.
  const std::shared_ptr<Package> package = shared_package();
  std::vector<KernelBinary>& binaries = package->manifest.kernels[6].binaries;
  package->files.erase(binaries[1].path);
  binaries.pop_back();
  NetworkSample sample(package);
  sample.network.bind(sample.io(8), {.programmatic = true});
  const FakeGraph graph = sample.fake.graphs().front();
  REQUIRE(graph.edges.size() == 6);
  for (const FakeEdge& edge : graph.edges) {
    INFO(edge.from << " to " << edge.to);
    CHECK(edge.programmatic == (edge.to != kFc));
  }
  CHECK(sample.fake.calls_of("cuGraphAddDependencies") == 1);
  CHECK(sample.fake.calls_of("cuGraphAddDependenciesWithData") == 1);
}

TEST_CASE("network: pointers that are missing, null, unaligned or overlap") {
  NetworkSample sample;
  const auto error = [&](const std::function<void(NetworkIo&)>& edit) {
    NetworkIo io = sample.io(8);
    edit(io);
    return BURIN_THROWN(usage, sample.network.bind(io)).text;
  };
  CHECK(error([](NetworkIo& io) { io.inputs.pop_back(); }) ==
        "the network has 2 inputs (image, shift), and 1 pointer was given");
  CHECK(error([](NetworkIo& io) { io.outputs.clear(); }) ==
        "the network has 2 outputs (scores, features), and 0 pointers were given");
  CHECK(error([](NetworkIo& io) { io.inputs[1] = nullptr; }) == "input 'shift' is a null pointer");
  CHECK(error([](NetworkIo& io) { io.outputs[0] = nullptr; }) == "output 'scores' is a null pointer");
  CHECK(error([](NetworkIo& io) { io.batch = 0; }) == "batch 0 is not within 1..1048576");
  const auto shifted = [](const void* pointer, int bytes) { return const_cast<char*>(bytes_of(pointer)) + bytes; };
  CHECK(error([&](NetworkIo& io) {
          io.inputs[0] = shifted(io.inputs[0], 4);
        }).starts_with("input 'image' is not aligned to 16 bytes, which kernel conv1_b8 relies on: its address is 0x"));
  CHECK(error([&](NetworkIo& io) {
          io.outputs[1] = shifted(io.outputs[1], 8);
        }).starts_with("output 'features' is not aligned to 16 bytes, which kernel operator_features relies on"));
  CHECK(error([&](NetworkIo& io) {
          io.inputs[1] = shifted(io.inputs[1], 2);
        }).starts_with("input 'shift' is not aligned to 4 bytes, which kernel operator_add relies on"));
  CHECK(error([&](NetworkIo& io) {
          io.outputs[1] = const_cast<void*>(io.inputs[0]);
        }).starts_with("output 'features' and input 'image' overlap at batch 8: 100352 bytes at 0x"));
  CHECK(error([&](NetworkIo& io) {
          io.outputs[0] = shifted(io.outputs[1], 8 * kSampleTensorWords * 4 - 4);
        }).starts_with("output 'features' and output 'scores' overlap at batch 8"));
  // Words of shift need not be aligned to more than a word, and what lies side by side does not overlap.
  NetworkIo io = sample.io(8);
  io.inputs[1] = shifted(io.inputs[1], 4);
  io.outputs[0] = shifted(io.inputs[1], 8 * kSampleFeatures * 4);
  CHECK_NOTHROW(sample.network.bind(io));
  CHECK(sample.fake.graphs().size() == 1);
}

TEST_CASE("network: a later run that begins at an address its kernels cannot take") {
  FakeDriver fake;
  const Device device = Device::open(0);
  const DeviceBuffer x(device, 4096), y(device, 4096);
  const NetworkIo one = {{x.data()}, {y.data()}, 1}, three = {{x.data()}, {y.data()}, 3};
  const std::shared_ptr<Package> package = small_images(1, 32);
  REQUIRE(verify(package->manifest) == std::vector<std::string>{});
  const LoadedNetwork network(LoadedPackage(device, package, "small"));
  CHECK(network.bind(one).arena_bytes() == 256);
  CHECK(BURIN_THROWN(unsupported, network.bind(three)).text ==
        "batch 3 runs as 3 x 1, and image 1 of input 'x' does not begin at a multiple of 32 bytes, which kernel "
        "conv_b4 relies on; run as many images as one program takes, or compile a larger batch");
  // One step alone has nothing in between, and takes all images at once.
  Program& program = package->manifest.programs[0];
  program.steps.pop_back();
  program.buffers.pop_back();
  program.steps[0].writes.buffer = 1;
  complete(program);
  REQUIRE(verify(package->manifest) == std::vector<std::string>{});
  const LoadedNetwork layer(LoadedPackage(device, package, "small"));
  const NetworkRun run = layer.bind(three);
  CHECK(run.schedule().text() == "batch 3 runs as 3 of 1");
  CHECK(run.arena_bytes() == 0);
}

TEST_CASE("network: a later run that begins in the middle of a pair of images") {
  constexpr TensorFormat kHalves = {ElementType::f16, TensorLayout::n2chw};
  FakeDriver fake;
  const Device device = Device::open(0);
  const DeviceBuffer x(device, 4096), y(device, 4096);
  const auto network = [&](int batch) {
    const std::shared_ptr<Package> package = small_images(batch, 4, kHalves);
    REQUIRE(verify(package->manifest) == std::vector<std::string>{});
    return LoadedNetwork(LoadedPackage(device, package, "small"));
  };
  const auto io = [&](int batch) { return NetworkIo{{x.data()}, {y.data()}, batch}; };
  CHECK_NOTHROW(network(1).bind(io(1)));
  CHECK(BURIN_THROWN(unsupported, network(1).bind(io(2))).text ==
        "batch 2 runs as 2 x 1, and image 1 of 'x' lies in the middle of 2 images that lie together");
  // Whole pairs lie one after the other.
  const NetworkRun run = network(2).bind(io(5));
  CHECK(run.schedule().text() == "batch 5 runs as 2 x 2 + 1 of 2");
  for (int part = 0; part < 3; ++part) {
    CHECK(run.address(2 * part, run.step(2 * part).reads[0]) == bytes_of(x.data()) + part * 112);
    CHECK(run.address(2 * part + 1, run.step(2 * part + 1).writes) == bytes_of(y.data()) + part * 112);
  }
}

TEST_CASE("network: the limit of a grid") {
  const std::shared_ptr<Package> package = shared_package();
  edit_template(package->manifest.kernels.back(), [](TemplatePlan& plan) { plan.launch().tiles_per_image = 25'000; });
  FakeDriver fake;
  const LoadedPackage loaded(Device::open(0), package, "sample");
  const LoadedKernel kernel = loaded.kernel_by_symbol(package->manifest.kernels.back().symbol);
  CHECK(BURIN_THROWN(unsupported, kernel.workspace_size(100'000)).text ==
        "batch 100000 of operator features needs 2500000000 blocks (25000 per 1 images), more than a grid's "
        "2147483647; launch fewer images at a time");
}

TEST_CASE("network: the limit of a graph") {
  NetworkSample sample;
  NetworkIo io = sample.io(300'000);
  // Nothing is read or written: addresses are enough.
  for (std::size_t i = 0; i < 2; ++i) {
    io.inputs[i] = reinterpret_cast<const void*>(std::uintptr_t{1} << (40 + i));
    io.outputs[i] = reinterpret_cast<void*>(std::uintptr_t{1} << (42 + i));
  }
  CHECK(BURIN_THROWN(unsupported, sample.network.bind(io))
            .has("batch 300000 runs as 37500 x 8: 225000 launches are over 200000, the most of one graph"));
}

TEST_CASE("network: drivers that are too old are named") {
  NetworkSample sample;
  sample.fake.lacks_edge_data();
  sample.network.bind(sample.io(8));
  CHECK(std::ranges::none_of(sample.fake.graphs().back().edges, &FakeEdge::programmatic));
  sample.fake.lacks_kernel_nodes();
  CHECK(BURIN_THROWN(device, sample.network.bind(sample.io(8))).has("networks need a driver for CUDA 12.0 or newer"));
}

TEST_CASE("network: driver failures name the step") {
  NetworkSample sample;
  sample.fake.fail_call = "cuGraphAddKernelNode";
  CHECK(
      BURIN_THROWN(device, sample.network.bind(sample.io(8)))
          .has("cuGraphAddKernelNode failed: CUDA_ERROR_OUT_OF_MEMORY (2): out of memory; while adding step 0, kernel "
               "conv1_b8 of layer conv1, with batch 8: 8 x 4 blocks of 224 threads, 3456 bytes of shared memory"));
  sample.fake.fail_call.clear();
  const NetworkRun run = sample.network.bind(sample.io(8));
  sample.fake.fail_call = "cuLaunchKernel";
  CHECK(
      BURIN_THROWN(device, run.launch_step(kFc, nullptr))
          .has(
              "while launching step 3, kernel operator_fc of operator fc, with batch 8: 10 x 1 blocks of 256 threads"));
  sample.fake.fail_call = "cuGraphLaunch";
  CHECK(BURIN_THROWN(device, run.launch(nullptr)).has("while launching a network"));
  sample.fake.fail_call.clear();
  CHECK_NOTHROW(run.launch(nullptr));
}

TEST_CASE("network: a run outlives what it was made from, and nothing is left behind") {
  FakeDriver fake;
  {
    std::optional<NetworkRun> run;
    {
      const Device device = Device::open(0);
      static float image[2 * kSampleImageWords], shift[2 * kSampleFeatures], scores[2 * kSampleFeatures];
      alignas(16) static float features[2 * kSampleTensorWords];
      const auto* aligned = image + (16 - reinterpret_cast<std::uintptr_t>(image) % 16) % 16 / 4;
      const LoadedNetwork network(LoadedPackage(device, shared_package(), "sample"));
      run = network.bind({{aligned, shift}, {scores, features}, 1});
    }
    run->launch(nullptr);
    CHECK(run->step(kFc).name == "fc");
    CHECK(fake.calls_of("cuGraphLaunch") == 1);
  }
  CHECK(fake.live().empty());
  CHECK(fake.calls_of("cuGraphCreate") == fake.calls_of("cuGraphDestroy"));
}

TEST_CASE("network: loose halves lie one behind the other, from whatever half a part begins") {
  FakeDriver fake;
  const Device device = Device::open(0);
  const LoadedNetwork network(LoadedPackage(device, std::make_shared<Package>(loose_network_package()), "loose.burin"));
  const NetworkTensor input = network.inputs().at(0), output = network.outputs().at(0);
  CHECK(input.element == Element::f16);
  CHECK(output.element == Element::bf16);
  for (const NetworkTensor& tensor : {input, output}) {
    CHECK(tensor.is_nchw());
    CHECK_FALSE(tensor.is_plain());
    CHECK(tensor.images_together == 1);
    CHECK(tensor.elements() == kLooseBytes / 2);
    CHECK(tensor.bytes(1) == kLooseBytes);
    CHECK(tensor.bytes(5) == 5 * kLooseBytes);
  }
  // The output begins where the input's last half ends.
  const DeviceBuffer memory(device, 2 * 5 * kLooseBytes);
  char* const from = memory.data<char>();
  const NetworkRun run = network.bind({{from}, {from + 5 * kLooseBytes}, 5});
  CHECK(run.schedule().text() == "batch 5 runs as 2 x 2 + 1 of 2");
  const std::vector<FakeLaunch> nodes = fake.graphs().front().nodes;
  REQUIRE(nodes.size() == 6);
  for (int part = 0; part < 3; ++part) {
    CHECK(nodes[2 * part].input == from + 2 * part * kLooseBytes);
    CHECK(nodes[2 * part + 1].output == from + (5 + 2 * part) * kLooseBytes);
  }
  CHECK(network.bind({{from + 2}, {from + 6 * kLooseBytes}, 1}).steps() == 2);
  CHECK_THAT(BURIN_THROWN(usage, network.bind({{from + 1}, {from + 5 * kLooseBytes}, 1})).text,
             Contains("input 'image' is not aligned to 2 bytes"));
  CHECK_THAT(BURIN_THROWN(usage, network.bind({{from}, {from + 4 * kLooseBytes}, 5})).text,
             Contains("overlap at batch 5: 270 bytes at"));
}
