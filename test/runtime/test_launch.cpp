#include <cstdlib>
#include <functional>
#include <limits>
#include <new>
#include <string_view>

#include "runtime/burin/device_memory.hpp"
#include "runtime/burin/runtime.hpp"
#include "runtime/launch_plan.h"
#include "test/catch.h"
#include "test/package/sample_plans.h"
#include "test/runtime/fake_driver.h"
#include "test/runtime/sample_package.h"
#include "test/skip.h"
#include "test/thrown.h"

using namespace burin;
using namespace burin_test;

// Counts this thread's allocations, to show that a launch makes none. The sanitizers bring an operator new of their
// own.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define BURIN_COUNTS_ALLOCATIONS 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define BURIN_COUNTS_ALLOCATIONS 0
#endif
#endif
#ifndef BURIN_COUNTS_ALLOCATIONS
#define BURIN_COUNTS_ALLOCATIONS 1
#endif

static thread_local std::size_t allocations = 0;
#if BURIN_COUNTS_ALLOCATIONS
void* operator new(std::size_t bytes) {
  ++allocations;
  if (void* memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
#endif

namespace {

// A loaded sample and buffers for its layers.
struct Sample {
  FakeDriver fake;
  Device device = Device::open(0);
  LoadedPackage package{device, sample_package(), "sample"};
  LoadedKernel kernel = package.kernel("conv1", 1);
  Workspace workspace{device, kernel.workspace_size(8)};
  float input = 0, output = 0, residual = 0;
  LaunchIo io{&input, &output, nullptr, 1};
};

}  // namespace

TEST_CASE("grid: tiles_and_slices") {
  Kernel kernel = sample_kernel("conv1", 1);
  LaunchGeometry& launch = kernel.form.launch;
  CHECK(launch_grid(kernel, 1).tiles == 4);
  CHECK(launch_grid(kernel, 3).tiles == 12);
  CHECK(launch_grid(kernel, 3).slices == 4);
  launch.tile_images = 4;
  launch.tiles_per_image = 1;
  CHECK(launch_grid(kernel, 1).tiles == 1);
  CHECK(launch_grid(kernel, 4).tiles == 1);
  CHECK(launch_grid(kernel, 5).tiles == 2);
  CHECK(launch_grid(kernel, 1 << 20).tiles == 1 << 18);
}

TEST_CASE("grid: whole clusters of tiles") {
  Kernel kernel = sample_kernel("conv1", 1);
  LaunchGeometry& launch = kernel.form.launch;
  launch.tiles_per_image = 3;
  launch.cluster_tiles = 2;
  CHECK(launch_grid(kernel, 1).tiles == 4);
  CHECK(launch_grid(kernel, 2).tiles == 6);
  CHECK(launch_grid(kernel, 3).tiles == 10);
  CHECK(launch_workspace(kernel, 3).partial_bytes == 9 * 8192);  // none for what lies beyond the batch
  launch.cluster_tiles = 8;
  launch.tiles_per_image = 1;
  CHECK(launch_grid(kernel, 1).tiles == 8);
  launch.tiles_per_image = 2047;
  CHECK(launch_grid(kernel, 1 << 20).tiles == 2047U << 20);
  launch.cluster_tiles = 7;
  launch.tiles_per_image = std::numeric_limits<int>::max();
  CHECK(BURIN_THROWN(unsupported, launch_grid(kernel, 1)).has("2147483653 blocks"));
}

TEST_CASE("grid: limits") {
  Kernel kernel = sample_kernel("conv1", 1);
  LaunchGeometry& launch = kernel.form.launch;
  CHECK(BURIN_THROWN(usage, launch_grid(kernel, 0)).has("batch 0 of layer conv1 is not within 1..1048576"));
  CHECK(BURIN_THROWN(usage, launch_grid(kernel, -1)).has("batch -1"));
  CHECK(BURIN_THROWN(usage, launch_grid(kernel, (1 << 20) + 1)).has("1048577"));
  launch.tiles_per_image = 2047;
  CHECK(launch_grid(kernel, 1 << 20).tiles == 2047U << 20);
  launch.tiles_per_image = 2048;  // 2^31 blocks, one too many
  CHECK(BURIN_THROWN(unsupported, launch_grid(kernel, 1 << 20)).has("2147483648 blocks"));
  CHECK(launch_grid(kernel, (1 << 20) - 1).tiles == 2147481600U);
  launch.slices = 65535;
  CHECK(launch_grid(kernel, 1).slices == 65535);
}

TEST_CASE("workspace_size: counters padded, partial sums per tile") {
  Kernel kernel = sample_kernel("conv1", 1);
  LaunchGeometry& launch = kernel.form.launch;
  CHECK(launch_workspace(kernel, 1).counter_bytes == 256);  // 4 tiles x 2 counters x 4 bytes
  CHECK(launch_workspace(kernel, 1).partial_bytes == 4 * 8192);
  CHECK(launch_workspace(kernel, 8).counter_bytes == 256);
  CHECK(launch_workspace(kernel, 9).counter_bytes == 512);
  CHECK(launch_workspace(kernel, 9).total() == 512 + 36 * 8192);
  launch.counters_per_tile = 0;
  CHECK(launch_workspace(kernel, 9).counter_bytes == 0);
  launch.workspace_bytes_per_tile = std::int64_t{1} << 60;
  CHECK(BURIN_THROWN(unsupported, launch_workspace(kernel, 9)).has("bytes of scratch memory, more than"));
}

TEST_CASE("workspace_size: merge serves both") {
  const WorkspaceSize both = merge({256, 1000}, {512, 10});
  CHECK(both.counter_bytes == 512);
  CHECK(both.partial_bytes == 1000);
}

TEST_CASE("workspace: counters are zero, wherever the partial sums lie") {
  FakeDriver fake;
  const Device device = Device::open(0);
  const Workspace workspace(device, {512, 1024});
  const WorkspaceView view = workspace.view();
  REQUIRE(view.counters != nullptr);
  CHECK(std::all_of(view.counters, view.counters + 512 / 4, [](std::uint32_t counter) { return counter == 0; }));
  CHECK(reinterpret_cast<char*>(view.partials) - reinterpret_cast<char*>(view.counters) == 512);
  CHECK(fake.calls_of("cuStreamSynchronize") == 1);
}

TEST_CASE("workspace: empty_and_bad_sizes") {
  FakeDriver fake;
  const Device device = Device::open(0);
  const Workspace none(device, {0, 0});
  CHECK(none.view().counters == nullptr);
  CHECK(none.view().partials == nullptr);
  CHECK(fake.calls_of("cuMemAlloc") == 0);
  CHECK(BURIN_THROWN(usage, Workspace(device, {100, 0})).has("a multiple of 256"));
  CHECK(BURIN_THROWN(usage, Workspace(device, {256, -1})).has("must not be negative"));
}

TEST_CASE("workspace: moves") {
  FakeDriver fake;
  {
    const Device device = Device::open(0);
    Workspace a(device, {256, 0});
    Workspace b(std::move(a));
    a = Workspace(device, {512, 0});
    b = std::move(a);
    CHECK(b.view().counter_bytes == 512);
  }
  CHECK(fake.live().empty());
}

TEST_CASE("launch: geometry and parameters") {
  Sample sample;
  const Stream stream(sample.device);
  sample.io.batch = 3;
  sample.kernel.launch(stream, sample.io, sample.workspace);
  const std::vector<FakeLaunch> launches = sample.fake.launches();
  REQUIRE(launches.size() == 1);
  const FakeLaunch& launch = launches[0];
  CHECK(launch.geometry == std::array<unsigned, 6>{12, 4, 1, 64, 1, 1});
  CHECK(launch.shared_bytes == 100'000);
  CHECK(launch.stream == stream.handle());
  CHECK(launch.context == sample.device.context());
  CHECK(launch.function->symbol == "conv1_b1");
  CHECK(launch.input == &sample.input);
  CHECK(launch.output == &sample.output);
  CHECK(launch.residual == nullptr);
  CHECK(launch.batch == 3);
  // The workspace was made for 8 images: the partial sums lie behind all of its counters, for every batch.
  CHECK(launch.counters == sample.workspace.view().counters);
  CHECK(launch.partials == sample.workspace.view().partials);
}

TEST_CASE("launch: allocates_nothing") {
  const char* preloaded = std::getenv("LD_PRELOAD");
  const bool in_valgrind =
      preloaded != nullptr && std::string_view(preloaded).find("vgpreload") != std::string_view::npos;
  if (!BURIN_COUNTS_ALLOCATIONS || in_valgrind) BURIN_SKIP("the sanitizer has an operator new of its own");
  Sample sample;
  const Stream stream(sample.device);
  const std::size_t before = allocations;
  for (int i = 0; i < 10; ++i) sample.kernel.launch(stream, sample.io, sample.workspace);
  CHECK(allocations == before);
  const std::string one(1000, 'x');
  CHECK(allocations == before + 1);  // they are counted
}

TEST_CASE("launch: workspace_rules") {
  Sample sample;
  const WorkspaceView good = sample.workspace.view();
  const auto launch = [&](const WorkspaceView& view, int batch = 1) {
    LaunchIo io = sample.io;
    io.batch = batch;
    sample.kernel.launch(nullptr, io, view);
  };
  CHECK_NOTHROW(launch(good));
  CHECK_NOTHROW(launch(good, 8));
  const Thrown missing = BURIN_THROWN(usage, launch({}));
  CHECK(missing.has("launch of layer conv1 with batch 1 needs a workspace with 256 bytes of counters"));
  WorkspaceView no_partials = good;
  no_partials.partials = nullptr;
  CHECK(BURIN_THROWN(usage, launch(no_partials)).has("32768 bytes of partial sums"));
  CHECK(BURIN_THROWN(usage, launch(good, 9)).has("needs 512 bytes of counters, and the workspace has 256"));
  WorkspaceView short_by_one = good;
  short_by_one.partial_bytes = 32767;
  CHECK(BURIN_THROWN(usage, launch(short_by_one)).has("the workspace has 32767"));
  CHECK(sample.fake.launches().size() == 2);
}

TEST_CASE("launch: pointer_rules") {
  Sample sample;
  const auto launch = [&](LaunchIo io) { sample.kernel.launch(nullptr, io, sample.workspace); };
  CHECK(BURIN_THROWN(usage, launch({nullptr, &sample.output, nullptr, 1})).has("input is a null pointer"));
  CHECK(BURIN_THROWN(usage, launch({&sample.input, nullptr, nullptr, 1})).has("output is a null pointer"));
  CHECK(BURIN_THROWN(usage, launch({&sample.input, &sample.output, &sample.residual, 1}))
            .has("launch of layer conv1: a residual was given, and the kernel has none"));
  const auto* askew = reinterpret_cast<const float*>(reinterpret_cast<const char*>(&sample.input) + 1);
  CHECK(BURIN_THROWN(usage, launch({askew, &sample.output, nullptr, 1})).has("input is not aligned"));
  CHECK(BURIN_THROWN(usage, launch({&sample.input, &sample.output, nullptr, 0})).has("batch 0"));
}

TEST_CASE("launch: alignment that the kernel relies on") {
  Kernel kernel = sample_template_kernel("conv2");
  edit_template(kernel, [](TemplatePlan& plan) {
    plan.input().alignment = 16;
    plan.output().alignment = plan.residual().alignment = 32;
  });
  alignas(64) float memory[32] = {};
  std::uint32_t counter = 0;
  const auto launch = [&](int input, int output, int residual) {
    check_launch(kernel, {memory + input, memory + output, memory + residual, 1}, {&counter, 256, memory, 16384},
                 launch_workspace(kernel, 1));
  };
  CHECK_NOTHROW(launch(0, 0, 0));
  CHECK_NOTHROW(launch(4, 8, 16));  // 16, 32 and 64 bytes on
  CHECK(BURIN_THROWN(usage, launch(1, 0, 0)).has("launch of layer conv2: input is not aligned to 16 bytes"));
  CHECK(BURIN_THROWN(usage, launch(2, 0, 0)).has("which kernel conv2_b4 relies on: its address is 0x"));
  CHECK(BURIN_THROWN(usage, launch(0, 4, 0)).has("is not aligned to 32 bytes"));
  CHECK(BURIN_THROWN(usage, launch(0, 4, 0)).has("output is not aligned"));
  CHECK(BURIN_THROWN(usage, launch(0, 0, 4)).has("residual is not aligned"));
}

namespace {

// The sample whose conv2 reads so many channels in nchw4.
std::shared_ptr<Package> sample_with_packed_input(int channels) {
  return sample_package({}, [&](std::vector<Kernel>& kernels) {
    kernels.back().layer->shape.in_channels = channels;
    edit_template(kernels.back(), [&](TemplatePlan& plan) {
      plan.input() = image_tensor(TensorRole::input, channels, 14, 14, TensorLayout::nchw4);
    });
  });
}

}  // namespace

TEST_CASE("launch: an unaligned tensor of an nchw4 kernel never reaches the driver") {
  FakeDriver fake;
  const LoadedPackage loaded(Device::open(0), sample_with_packed_input(8), "sample");
  const LoadedKernel kernel = loaded.kernel("conv2", 4);
  alignas(16) float memory[8] = {};
  const auto launch = [&](const float* input) { kernel.launch(nullptr, {input, memory, memory + 1, 1}); };
  CHECK(BURIN_THROWN(usage, launch(memory + 3)).has("input is not aligned"));
  CHECK(fake.launches().empty());
  launch(memory + 4);
  CHECK(fake.launches().size() == 1);
}

TEST_CASE("kernel: shapes tell layout, size and alignment") {
  FakeDriver fake;
  const LoadedPackage loaded(Device::open(0), sample_with_packed_input(9), "sample");
  const LoadedKernel kernel = loaded.kernel("conv2", 4);
  const ImageShape input = kernel.input_shape(), output = kernel.output_shape();
  CHECK(input.channels_together == 4);
  CHECK(input.alignment == 16);
  CHECK(input.channel_blocks() == 3);
  CHECK(input.elements() == 12 * 14 * 14);
  CHECK(output.channels_together == 1);
  CHECK(output.alignment == 4);
  CHECK(output.elements() == 16 * 14 * 14);
  CHECK(input.element == Element::f32);
  CHECK(input.images_together == 1);
  CHECK(input.tensor_bytes(3) == 3 * 12 * 14 * 14 * 4);
}

TEST_CASE("kernel: half tensors tell their type and that images lie in pairs") {
  FakeDriver fake;
  const std::shared_ptr<Package> package = half_sample_package(Precision::fp16x2, [](std::vector<Kernel>& kernels) {
    edit_template(kernels.back(), [](TemplatePlan& plan) { plan.output().element = ElementType::bf16; });
  });
  const LoadedPackage loaded(Device::open(0), package, "sample");
  const LoadedKernel kernel = loaded.kernel("conv2", 4);
  const ImageShape input = kernel.input_shape(), output = kernel.output_shape();
  CHECK(input.element == Element::f16);
  CHECK(output.element == Element::bf16);
  CHECK(input.images_together == 2);
  CHECK(input.channels_together == 1);
  CHECK(input.alignment == 4);
  CHECK(input.elements() == 8 * 14 * 14);
  CHECK(input.tensor_elements(4) == 4 * 8 * 14 * 14);
  CHECK(input.tensor_elements(3) == 4 * 8 * 14 * 14);  // filled up
  CHECK(output.tensor_bytes(1) == 2 * 16 * 14 * 14 * 2);
  // The even image's value, and behind it the same of the odd image.
  CHECK(input.index(2, 3, 4, 5) == (((1 * 8 + 3) * 14 + 4) * 14 + 5) * 2);
  CHECK(input.index(3, 3, 4, 5) == input.index(2, 3, 4, 5) + 1);
}

TEST_CASE("elements: floats there and back, through unaligned memory") {
  const std::vector<float> values = {1, -2, 0.333251953125F, 65504, 0};
  for (const Element element : {Element::f32, Element::f16}) {
    const std::vector<std::byte> bytes = to_elements(element, values);
    CHECK(bytes.size() == values.size() * static_cast<std::size_t>(bytes_of(element)));
    std::vector<std::byte> shifted(1);
    shifted.insert(shifted.end(), bytes.begin(), bytes.end());
    CHECK(from_elements(element, std::span(shifted).subspan(1)) == values);
  }
  CHECK(from_elements(Element::bf16, to_elements(Element::bf16, std::vector<float>{1.01F})).front() == 1.0078125F);
  CHECK(from_elements(Element::f16, {}).empty());
  CHECK(BURIN_THROWN(usage, from_elements(Element::bf16, std::vector<std::byte>(3)))
            .has("3 bytes are no whole values of bf16 (2 bytes each)"));
}

TEST_CASE("launch: a grid of pairs of images") {
  FakeDriver fake;
  const LoadedPackage loaded(Device::open(0), half_sample_package(Precision::bf16), "sample");
  const LoadedKernel kernel = loaded.kernel("conv2", 4);  // 4 tiles for two images
  CHECK(kernel.grid(1).tiles == 4);
  CHECK(kernel.grid(2).tiles == 4);
  CHECK(kernel.grid(3).tiles == 8);
  alignas(4) std::uint16_t input[2] = {}, output[2] = {}, residual[2] = {};
  kernel.launch(nullptr, {.input = input, .output = output, .residual = residual, .batch = 3});
  CHECK(fake.launches().back().input == input);
  CHECK(fake.launches().back().output == output);
  CHECK(fake.launches().back().batch == 3);
  CHECK(BURIN_THROWN(usage, kernel.launch(nullptr, {.input = input + 1, .output = output, .residual = residual}))
            .has("input is not aligned to 4 bytes"));
}

TEST_CASE("image_shape: a value lies where the layout has it") {
  for (const TensorLayout layout : kTensorLayouts) {
    for (int channels = 1; channels <= 9; ++channels) {
      const ImageShape shape{.channels = channels,
                             .height = 2,
                             .width = 3,
                             .channels_together = static_cast<int>(channels_side_by_side(layout, channels)),
                             .images_together = images_together(layout)};
      REQUIRE(shape.elements() == image_elements(layout, channels, 2, 3));
      for (const int batch : {1, 2, 3, 4, 8, 9}) {
        REQUIRE(shape.tensor_elements(batch) == tensor_elements(layout, batch, channels, 2, 3));
      }
      for (std::int64_t i = 0; i < shape.tensor_elements(3); ++i) {
        const TensorPlace at = place_of(layout, channels, 2, 3, i);
        INFO(to_string(layout) << ", " << channels << " channels, element " << i);
        CHECK(shape.index(static_cast<int>(at.image), static_cast<int>(at.channel), static_cast<int>(at.row),
                          static_cast<int>(at.col)) == i);
      }
    }
  }
}

TEST_CASE("launch: residual") {
  Sample sample;
  const LoadedKernel kernel = sample.package.kernel("conv2", 1);
  const auto launch = [&](const float* residual) {
    kernel.launch(nullptr, {&sample.input, &sample.output, residual, 1});  // needs no workspace
  };
  CHECK(BURIN_THROWN(usage, launch(nullptr)).has("residual is a null pointer"));
  launch(&sample.residual);
  CHECK(sample.fake.launches().back().residual == &sample.residual);
}

namespace {

// A kernel that copies boxes, of images in device memory.
struct BoxSample {
  static constexpr int kMostImages = 17;

  FakeDriver fake;
  Device device = Device::open(0);
  std::shared_ptr<Package> described;
  LoadedPackage package{device, described, "sample"};
  DeviceBuffer input{device, 3 * 14 * 14 * 128}, output{device, 3 * 2 * 14 * 14 * 128};

  explicit BoxSample(const std::function<void(TemplatePlan&)>& edit = [](TemplatePlan&) {})
      : described(sample_package({}, [&](std::vector<Kernel>& kernels) {
          kernels.push_back(sample_box_kernel("conv3"));
          edit_template(kernels.back(), edit);
        })) {}

  LaunchIo io(int batch) { return {input.data(), output.data(), nullptr, batch}; }
};

}  // namespace

TEST_CASE("launch: boxes are made of the input's address and the batch") {
  BoxSample sample;
  sample.fake.knows(sample.described);
  const LoadedKernel kernel = sample.package.kernel("conv3", 4);
  for (const int batch : {1, 8, 9, BoxSample::kMostImages}) kernel.launch(nullptr, sample.io(batch));
  const std::vector<FakeLaunch> launches = sample.fake.launches();
  REQUIRE(launches.size() == 4);
  for (const FakeLaunch& launch : launches) {
    INFO("batch " << launch.batch);
    const FakeBox& box = launch.boxes[0];
    CHECK(box.address == launch.input);
    CHECK(launch.input == sample.input.data<void>());
    CHECK(box.extents == std::array<std::uint64_t, 5>{64, 14, 14, 1, (static_cast<unsigned>(launch.batch) + 7) / 8});
    CHECK(box.strides == std::array<std::uint64_t, 4>{128, 14 * 128, 14 * 14 * 128, 14 * 14 * 128});
    CHECK(box.box == std::array<std::uint32_t, 5>{64, 16, 3, 1, 1});
    CHECK(box.steps == std::array<std::uint32_t, 5>{1, 1, 1, 1, 1});
    CHECK_FALSE(box.swizzled);
  }
  CHECK(sample.fake.calls_of("cuTensorMapEncodeTiled") == 4);
  CHECK(sample.fake.faults() == std::vector<std::string>{});
}

TEST_CASE("launch: the driver is told of a swizzled box") {
  BoxSample sample([](TemplatePlan& plan) { plan.form.boxes.front().swizzled = true; });
  const LoadedKernel kernel = sample.package.kernel("conv3", 4);
  kernel.launch(nullptr, sample.io(8));
  REQUIRE(sample.fake.launches().size() == 1);
  CHECK(sample.fake.launches()[0].boxes[0].swizzled);
}

TEST_CASE("launch: boxes go into a graph") {
  BoxSample sample;
  const LoadedKernel kernel = sample.package.kernel("conv3", 4);
  const Stream stream(sample.device);
  const Graph graph =
      Graph::capture(stream, [&](CUstream_st* target) { kernel.launch(target, sample.io(BoxSample::kMostImages)); });
  graph.launch(stream);
  REQUIRE(sample.fake.launches().size() == 1);
  CHECK(sample.fake.launches()[0].boxes[0].address == sample.input.data<char>());
}

TEST_CASE("launch: boxes of a driver that knows none") {
  BoxSample sample;
  sample.fake.lacks_tensor_maps();
  const LoadedPackage package(sample.device, sample.described, "sample");
  const Thrown error = BURIN_THROWN(device, package.kernel("conv3", 4));
  CHECK(error.text ==
        "kernel conv3_b4 of layer conv3 copies boxes of its tensors, which needs a driver for CUDA 12.0 or newer, and "
        "this one is for CUDA 13.0: update the NVIDIA driver");
  CHECK_NOTHROW(package.kernel("conv2", 4));
}

TEST_CASE("launch: a driver that refuses a box") {
  BoxSample sample;
  const LoadedKernel kernel = sample.package.kernel("conv3", 4);
  sample.fake.fail_call = "cuTensorMapEncodeTiled";
  sample.fake.fail_code = kErrorInvalidValue;
  const Thrown error = BURIN_THROWN(device, kernel.launch(nullptr, sample.io(8)));
  CHECK(error.text ==
        "cuTensorMapEncodeTiled failed: CUDA_ERROR_INVALID_VALUE (1): invalid argument; for boxes of tensor 0, 14x14, "
        "1x3x16, while preparing kernel conv3_b4 of layer conv3, with batch 8: 1 x 1 blocks of 64 threads, 0 bytes of "
        "shared memory");
  CHECK(sample.fake.launches().empty());
}

TEST_CASE("launch: driver_failure names layer and geometry") {
  Sample sample;
  sample.fake.fail_call = "cuLaunchKernel";
  const Thrown error = BURIN_THROWN(device, sample.kernel.launch(nullptr, sample.io, sample.workspace));
  CHECK(error.has("cuLaunchKernel failed: CUDA_ERROR_OUT_OF_MEMORY"));
  CHECK(error.has(
      "kernel conv1_b1 of layer conv1, with batch 1: 4 x 4 blocks of 64 threads, 100000 bytes of shared memory"));
}

TEST_CASE("launch: into_a_graph") {
  Sample sample;
  const Stream stream(sample.device);
  const Graph graph = Graph::capture(stream, [&](CUstream_st* target) {
    for (int i = 0; i < 3; ++i) sample.kernel.launch(target, sample.io, sample.workspace);
  });
  CHECK(stream.handle()->clock_us == 0);
  graph.launch(stream);
  CHECK(stream.handle()->clock_us == 3 * sample.fake.microseconds_per_launch);
}

TEST_CASE("kernel: outlives_its_package") {
  FakeDriver fake;
  {
    auto package = std::make_unique<LoadedPackage>(Device::open(0), sample_package(), "sample");
    const LoadedKernel kernel = package->kernel("conv1", 1);
    package.reset();
    CHECK(kernel.layer() == "conv1");
    CHECK(kernel.input_shape().elements() == 8 * 14 * 14);
    CHECK(kernel.output_shape().elements() == 16 * 14 * 14);
    float value = 0;
    const Workspace workspace(Device::open(0), kernel.workspace_size(1));
    kernel.launch(nullptr, {&value, &value, nullptr, 1}, workspace);
  }
  CHECK(fake.live().empty());
}

namespace {

// conv1 with maps: cells of 2x7x7 in the input, the tiles in the output.
struct WithMaps {
  static std::shared_ptr<Package> package_with_maps() {
    return sample_package({}, [](std::vector<Kernel>& kernels) {
      edit_baked(kernels.front(), [](BakedPlan& plan) {
        plan.skips = ActivityMap{2, 7, 7};
        plan.marks = true;
      });
    });
  }

  FakeDriver fake;
  Device device = Device::open(0);
  LoadedPackage package{device, package_with_maps(), "sample"};
  LoadedKernel kernel = package.kernel("conv1", 1);
  Workspace workspace{device, kernel.workspace_size(8)};
  float input = 0, output = 0;
  std::uint8_t input_activity = 0, output_activity = 0;
};

}  // namespace

TEST_CASE("launch: activity maps, their size and the order of their bytes") {
  WithMaps sample;
  const std::optional<ActivityShape> in = sample.kernel.input_activity(), out = sample.kernel.output_activity();
  REQUIRE((in && out));
  CHECK(in->bytes(3) == 2 * 2 * 2 * 8);
  CHECK(out->bytes(3) == 3 * 2 * 2 * 16);
  const ActivityMap map{2, 7, 7};
  const ActivityExtent extent{3, 8, 14, 14};
  for (const int image : {0, 1, 2}) {
    for (const int row : {0, 6, 13}) CHECK(in->index(image, 5, row, 7) == cell_at(map, extent, image, row, 7) * 8 + 5);
  }
  CHECK(in->bytes(3) == map_bytes(map, extent));
  CHECK_FALSE(sample.package.kernel("conv1", 8).input_activity());
}

TEST_CASE("launch: activity maps are handed on, and may be left out") {
  WithMaps sample;
  sample.kernel.launch(nullptr,
                       {.input = &sample.input,
                        .output = &sample.output,
                        .input_activity = &sample.input_activity,
                        .output_activity = &sample.output_activity},
                       sample.workspace);
  CHECK(sample.fake.launches().back().input_activity == &sample.input_activity);
  CHECK(sample.fake.launches().back().output_activity == &sample.output_activity);
  sample.kernel.launch(nullptr, {.input = &sample.input, .output = &sample.output}, sample.workspace);
  CHECK(sample.fake.launches().back().input_activity == nullptr);
  CHECK(sample.fake.launches().back().output_activity == nullptr);
}

TEST_CASE("launch: an activity map for a kernel that has none") {
  Sample sample;
  std::uint8_t map = 0;
  sample.io.input_activity = &map;
  const auto launch = [&] { sample.kernel.launch(nullptr, sample.io, sample.workspace); };
  CHECK(BURIN_THROWN(usage, launch())
            .has("an activity map of the input was given, and kernel conv1_b1 has none; compile it with "
                 "--skip-dead-tiles"));
  sample.io.input_activity = nullptr;
  sample.io.output_activity = &map;
  CHECK(BURIN_THROWN(usage, launch()).has("an activity map of the output was given"));
}
