// The parts that need a GPU, on the driver that counts and fails on request.

#include <algorithm>
#include <cmath>
#include <span>

#include "compiler/execute/executor.h"
#include "compiler/measure/layer_times.h"
#include "compiler/reference.h"
#include "compiler/verify/verification.h"
#include "ir/error.h"
#include "ir/kernel_program.h"
#include "ir/package/manifest_index.h"
#include "test/catch.h"
#include "test/package/sample_network.h"
#include "test/package/sample_plans.h"
#include "test/runtime/fake_driver.h"
#include "test/runtime/sample_package.h"

using namespace burin;
using namespace burin_test;

namespace {

ErrorKind kind_of_choice(const std::string& device) {
  try {
    choose_device(device);
  } catch (const Error& error) {
    return error.kind();
  }
  FAIL("no error");
  return ErrorKind::internal;
}

bool all_not_numbers(const std::vector<float>& values) {
  return std::ranges::all_of(values, [](float value) { return std::isnan(value); });
}

// The package with a program for each of its kernels.
std::shared_ptr<Package> with_programs(std::shared_ptr<Package> package) {
  package->manifest.programs.clear();
  add_layer_programs(package->manifest);
  REQUIRE(verify(*package) == std::vector<std::string>{});
  return package;
}

}  // namespace

TEST_CASE("auto_takes_the_first_gpu") {
  FakeDriver driver;
  CHECK_FALSE(choose_device("auto").host);
  CHECK_FALSE(choose_device("cuda").host);
  CHECK(choose_device("cuda:0").ordinal == 0);
  CHECK(native_arch() == "sm_90");
}

TEST_CASE("a_gpu_beyond_the_last_is_a_device_error") {
  FakeDriver driver;
  driver.devices.resize(2);
  CHECK(choose_device("cuda:1").ordinal == 1);
  CHECK(kind_of_choice("cuda:2") == ErrorKind::device);
}

TEST_CASE("a_driver_without_devices_leaves_the_host") {
  FakeDriver driver;
  driver.devices.clear();
  CHECK(choose_device("auto").host);
  CHECK_FALSE(native_arch());
  CHECK(kind_of_choice("cuda") == ErrorKind::device);
}

TEST_CASE("gpu_executor_launches_a_layer_twice_on_poison_and_gives_everything_back") {
  const std::shared_ptr<Package> package = with_programs(sample_package());
  for (const Program& program : package->manifest.programs) {
    FakeDriver driver;
    CAPTURE(program.name, program.batch);
    const Kernel& kernel = ManifestIndex(package->manifest).kernel(program.steps.front().kernel);
    const int batch = program.batch + 1;  // layers take any number
    {
      const std::unique_ptr<Executor> executor = make_executor(choose_device("cuda:0"), *package);
      CHECK(executor->name() == "cuda:0 (Fake H200, sm_90)");
      const Tensors outputs = executor->run(program, batch, random_inputs(program, 1, batch, 1));
      // The fake computes nothing: what was poisoned comes back poisoned.
      REQUIRE(outputs.size() == 1);
      CHECK(static_cast<std::int64_t>(outputs[0].size()) == kernel.layer->shape.output_elements() * batch);
      CHECK(all_not_numbers(outputs[0]));
      CHECK(driver.calls_of("cuGraphLaunch") == 2);
      REQUIRE(driver.graphs().size() == 1);
      REQUIRE(driver.graphs()[0].nodes.size() == 1);
      const FakeLaunch launch = driver.graphs()[0].nodes[0];
      CHECK(launch.function->symbol == kernel.symbol);
      CHECK(launch.batch == batch);
      CHECK((launch.residual != nullptr) == kernel.layer->shape.epilogue.residual);
    }
    CHECK(driver.live().empty());
  }
}

namespace {

// The sample's conv2 (with residual), 5 channels in and 6 out, in nchw4.
std::shared_ptr<Package> packed_sample() {
  return sample_package({}, [](std::vector<Kernel>& kernels) {
    Kernel& kernel = kernels.back();
    kernel.layer->shape.in_channels = 5;
    kernel.layer->shape.out_channels = 6;
    edit_template(kernel, [](TemplatePlan& plan) {
      plan.input() = image_tensor(TensorRole::input, 5, 14, 14, TensorLayout::nchw4);
      plan.output() = image_tensor(TensorRole::output, 6, 14, 14, TensorLayout::nchw4);
      plan.residual() = image_tensor(TensorRole::residual, 6, 14, 14, TensorLayout::nchw4);
    });
  });
}

}  // namespace

TEST_CASE("bench_allocates_by_the_kernels_layouts") {
  FakeDriver driver;
  const std::shared_ptr<Package> package = packed_sample();
  const Device device = Device::open(0);
  const Bench bench(device, *package, {.samples = 1, .copies = 1});
  CHECK(bench.time(package->manifest.kernels.back(), 3).loaded_from == "sm_90 cubin");
  // Inputs of 5 channels in turn, an output and a residual of 6, all filled up to 8; and one of each for the chain.
  const std::vector<std::size_t> allocations = driver.allocations();
  const auto count = [&](std::size_t channels) {
    return std::ranges::count(allocations, channels * 14 * 14 * 3 * sizeof(float));
  };
  CHECK(count(8) == kInputBuffers + 2 + 3);
  CHECK(count(5) == 0);
  CHECK(count(6) == 0);
}

TEST_CASE("bench_allocates_halves") {
  FakeDriver driver;
  const std::shared_ptr<Package> package = half_sample_package(Precision::fp16);
  const Kernel& kernel = package->manifest.kernels.back();
  const Device device = Device::open(0);
  const Bench bench(device, *package, {.samples = 1, .copies = 1});
  bench.time(kernel, 3);
  const auto count = [&](std::int64_t image) {
    return std::ranges::count(driver.allocations(), static_cast<std::size_t>(image) * 4 * 2);
  };
  CHECK(count(kernel.layer->shape.input_elements()) == kInputBuffers + 1);  // one for the chain
  CHECK(count(kernel.layer->shape.output_elements()) == 2 * 2);             // output and residual
}

TEST_CASE("gpu_executor_gives_everything_back_when_a_call_fails") {
  const std::shared_ptr<Package> package = with_programs(sample_package());
  const Program& program = package->manifest.programs.front();
  const Tensors inputs = random_inputs(program, 1, 1, 1);
  int failures = 0;
  for (int call = 1;; ++call) {
    FakeDriver driver;
    driver.fail_at = call;
    try {
      const std::unique_ptr<Executor> executor = make_executor({.host = false, .ordinal = 0, .note = {}}, *package);
      executor->run(program, 1, inputs);
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::device);
      ++failures;
    }
    CAPTURE(call, driver.failed_call());
    // A call that gives something back cannot give it back when it fails.
    if (!FakeDriver::is_release(driver.failed_call())) CHECK(driver.live().empty());
    if (driver.failed_call().empty()) break;  // there are no more calls
  }
  CHECK(failures > 10);
}

TEST_CASE("bench_loads_copies_and_measures_warm_and_cold") {
  FakeDriver driver;
  const std::shared_ptr<Package> package = sample_package();
  const Kernel& kernel = package->manifest.kernels.front();
  {
    const Device device = Device::open(0);
    const Bench bench(device, *package, {.samples = 7, .copies = 3});
    const KernelTimes times = bench.time(kernel, 2);
    CHECK(times.warm.samples_us.size() == 7);
    CHECK(times.cold.samples_us.size() == 7);
    CHECK(times.warm.median_us == Approx(driver.microseconds_per_launch));
    CHECK(times.cold.median_us == Approx(driver.microseconds_per_launch));
    CHECK(times.chained.samples_us.size() == 7);
    CHECK(times.chained.median_us == Approx(driver.microseconds_per_launch));
    CHECK(times.loaded_from == "sm_90 cubin");
    CHECK(driver.loaded_code().size() == 3);
  }
  CHECK(driver.live().empty());
}

TEST_CASE("bench_takes_code_in_turn_only_when_cold_and_inputs_always") {
  FakeDriver driver;
  const std::shared_ptr<Package> package = sample_package();
  const Device device = Device::open(0);
  const Bench bench(device, *package, {.samples = 1, .copies = 2});
  bench.time(package->manifest.kernels.front(), 1);
  const std::vector<FakeLaunch> launches = driver.launches();
  REQUIRE(launches.size() > 16);
  // The warm graph is captured first, the cold one last.
  CHECK(launches[0].function == launches[1].function);
  CHECK(launches[0].input != launches[1].input);
  const FakeLaunch& last = launches.back();
  const FakeLaunch& before_last = launches[launches.size() - 2];
  CHECK(last.function != before_last.function);
  CHECK(last.function->symbol == before_last.function->symbol);
}

TEST_CASE("bench_says_when_the_driver_compiled_the_ptx") {
  FakeDriver driver;
  SampleCode code;
  code.cubins.clear();
  const std::shared_ptr<Package> package = sample_package(code);
  const Device device = Device::open(0);
  const Bench bench(device, *package, {.samples = 1, .copies = 1});
  CHECK(bench.time(package->manifest.kernels.front(), 1).loaded_from == "JIT of the PTX");
}

TEST_CASE("geometric_means") {
  CHECK(geometric_mean({}) == 0);
  CHECK(geometric_mean({4.0}) == Approx(4.0));
  CHECK(geometric_mean({1.0, 4.0, 2.0}) == Approx(2.0));
}

TEST_CASE("the_program_for_a_batch_has_the_kernel_that_the_runtime_would_choose") {
  FakeDriver driver;
  const std::shared_ptr<Package> package = with_programs(sample_package());
  const Device device = Device::open(0);
  const LoadedPackage loaded(device, package, "sample");
  for (const int batch : {1, 2, 7, 8, 9, 31, 32, 33, 1000}) {
    CAPTURE(batch);
    for (const char* layer : {"conv1", "conv2"}) {
      const Program& program = program_for(ManifestIndex(package->manifest).programs(layer), batch);
      CHECK(program.steps.front().kernel == loaded.kernel(layer, batch).symbol());
    }
  }
  CHECK(ManifestIndex(package->manifest).programs("conv3").empty());
}

namespace {

// The sample's conv1 with maps, in cells of 1x7x7.
std::shared_ptr<Package> sample_with_maps() {
  return sample_package({}, [](std::vector<Kernel>& kernels) {
    edit_baked(kernels.front(), [](BakedPlan& plan) {
      plan.skips = ActivityMap{1, 7, 7};
      plan.marks = true;
    });
  });
}

}  // namespace

TEST_CASE("gpu_executor_hands_activity_maps_on") {
  FakeDriver driver;
  const std::shared_ptr<Package> package = sample_with_maps();
  package->manifest.programs = {program_of(package->manifest.kernels.front(), 1)};
  const Program& program = package->manifest.programs.front();
  Tensors inputs = random_inputs(program, 1, 1, 1);
  REQUIRE(inputs.size() == 2);
  std::vector<float>& marks = inputs[1];
  REQUIRE(marks.size() == 4 * 8);
  for (std::size_t i = 0; i < marks.size(); ++i) marks[i] = static_cast<float>(i % 3);
  const Tensors outputs =
      make_executor(choose_device("cuda:0"), *package)->run(program, 1, inputs, [&](const StepValues&) {
        const FakeLaunch launch = driver.launches().back();
        REQUIRE(launch.input_activity != nullptr);
        CHECK(std::ranges::equal(std::span(static_cast<const std::uint8_t*>(launch.input_activity), marks.size()),
                                 marks));
        REQUIRE(launch.output_activity != nullptr);
        static_cast<std::uint8_t*>(launch.output_activity)[5] = 1;
      });
  // The fake computes nothing: what the visitor did not write is poison.
  REQUIRE(outputs.size() == 2);
  CHECK(all_not_numbers(outputs[0]));
  std::vector<float> expected(4 * 16, 255);
  expected[5] = 1;
  CHECK(outputs[1] == expected);
  CHECK(driver.live().empty());
}

TEST_CASE("bench_reads_the_images_that_it_is_given_where_the_tensor_has_them") {
  KernelTensor tensor{.channels = 2, .rows = 1, .cols = 3, .image_words = 8, .run_words = 6};
  const std::vector<float> images = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  CHECK(input_elements(tensor, 2, {.dead = {}, .zeros = {}, .values = images}) ==
        std::vector<float>{1, 2, 3, 4, 5, 6, 0, 0, 7, 8, 9, 10, 11, 12});
  tensor.element = ElementType::f16;
  tensor.layout = TensorLayout::n2chw;
  CHECK(input_elements(tensor, 2, {.dead = {}, .zeros = {}, .values = images}) ==
        std::vector<float>{1, 7, 2, 8, 3, 9, 4, 10, 5, 11, 6, 12});
  // Without images and zeros, random values fill all that the launch may read.
  CHECK(input_elements(tensor, 3, {}).size() == 2 * (8 + 6));
}

TEST_CASE("bench_makes_as_many_zeros_as_it_is_asked_for") {
  const KernelTensor tensor{.channels = 5, .rows = 4, .cols = 5, .image_words = 100, .run_words = 100};
  const auto zeros = [&](double share) {
    return std::ranges::count(input_elements(tensor, 2, {.dead = {}, .zeros = SyntheticZeros{.share = share}}), 0.0F);
  };
  CHECK(zeros(0) == 0);
  CHECK(zeros(0.25) == 50);
  CHECK(zeros(1) == 200);
}

TEST_CASE("bench_with_dead_inputs_has_maps_and_without_has_none") {
  FakeDriver driver;
  const std::shared_ptr<Package> package = sample_with_maps();
  const Kernel& kernel = package->manifest.kernels.front();
  const Bench bench(Device::open(0), *package, {.samples = 1, .copies = 1});
  CHECK(bench.time(kernel, 2).skipped == 0);
  CHECK(driver.launches().back().input_activity == nullptr);
  CHECK(driver.launches().back().output_activity == nullptr);
  CHECK(bench.time(kernel, 2, {.dead = 0.0}).skipped == 0);
  CHECK(driver.launches().back().input_activity != nullptr);
  CHECK(driver.launches().back().output_activity != nullptr);
  CHECK(bench.time(kernel, 2, {.dead = 1.0}).skipped == 1);
  // A 3x3 filter sees all four cells of the image: rarely are all dead.
  const double some = bench.time(kernel, 2, {.dead = 0.75}).skipped;
  CHECK(some > 0);
  CHECK(some < 0.75);
}
