// The parts that need a GPU, on the driver that counts and fails on request.

#include <algorithm>
#include <cmath>
#include <limits>

#include "compiler/execute/executor.h"
#include "compiler/measure/layer_times.h"
#include "compiler/reference.h"
#include "ir/error.h"
#include "test/catch.h"
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

std::vector<float> not_numbers(std::int64_t count) {
  return std::vector<float>(static_cast<std::size_t>(count), std::numeric_limits<float>::quiet_NaN());
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

TEST_CASE("gpu_executor_launches_once_and_gives_everything_back") {
  FakeDriver driver;
  const std::shared_ptr<Package> package = sample_package();
  for (const Kernel& kernel : package->manifest.kernels) {
    CAPTURE(kernel.symbol);
    const std::size_t before = driver.launches().size();
    const int batch = 3;
    const std::vector<float> input(static_cast<std::size_t>(kernel.layer->shape.input_elements() * batch), 1.0F);
    std::vector<float> residual;
    if (kernel.layer->shape.epilogue.residual)
      residual.assign(static_cast<std::size_t>(kernel.layer->shape.output_elements() * batch), 2.0F);
    std::vector<float> output = not_numbers(kernel.layer->shape.output_elements() * batch);
    {
      const std::unique_ptr<Executor> executor = make_executor(choose_device("cuda:0"), *package);
      CHECK(executor->name() == "cuda:0 (Fake H200, sm_90)");
      executor->run(kernel, batch, input, residual, output);
      CHECK(driver.launches().back().function->symbol == kernel.symbol);
    }
    REQUIRE(driver.launches().size() == before + 1);
    const FakeLaunch launch = driver.launches().back();
    CHECK(launch.batch == batch);
    CHECK((launch.residual != nullptr) == kernel.layer->shape.epilogue.residual);
    // The fake computes nothing: what was poisoned comes back poisoned.
    CHECK(std::all_of(output.begin(), output.end(), [](float value) { return std::isnan(value); }));
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

TEST_CASE("gpu_executor_converts_to_and_from_the_kernels_layouts") {
  FakeDriver driver;
  const std::shared_ptr<Package> package = packed_sample();
  const Kernel& kernel = package->manifest.kernels.back();
  constexpr int kBatch = 2;
  const std::vector<float> input = random_tensor(kernel.layer->shape.input_elements() * kBatch, 1);
  const std::vector<float> residual = random_tensor(kernel.layer->shape.output_elements() * kBatch, 2);
  std::vector<float> output = random_tensor(kernel.layer->shape.output_elements() * kBatch, 3);
  const std::vector<float> before = output;
  make_executor(choose_device("cuda:0"), *package)->run(kernel, kBatch, input, residual, output);
  // The fake computes nothing, so what was there comes back, each value in its place.
  CHECK(output == before);
  CHECK(driver.live().empty());
}

TEST_CASE("bench_allocates_by_the_kernels_layouts") {
  FakeDriver driver;
  const std::shared_ptr<Package> package = packed_sample();
  const Device device = Device::open(0);
  const Bench bench(device, *package, {.samples = 1, .copies = 1});
  CHECK(bench.time(package->manifest.kernels.back(), 3).loaded_from == "sm_90 cubin");
  // Inputs of 5 channels in turn, an output and a residual of 6, all filled up to 8.
  const std::vector<std::size_t> allocations = driver.allocations();
  const auto count = [&](std::size_t channels) {
    return std::ranges::count(allocations, channels * 14 * 14 * 3 * sizeof(float));
  };
  CHECK(count(8) == kInputBuffers + 2);
  CHECK(count(5) == 0);
  CHECK(count(6) == 0);
}

TEST_CASE("gpu_executor_converts_to_and_from_halves") {
  for (const Precision precision : {Precision::fp16, Precision::bf16, Precision::fp16x2}) {
    CAPTURE(to_string(precision));
    FakeDriver driver;
    const std::shared_ptr<Package> package = half_sample_package(precision);
    const Kernel& kernel = package->manifest.kernels.back();
    constexpr int kBatch = 3;
    const std::vector<float> input = random_tensor(kernel.layer->shape.input_elements() * kBatch, 1);
    const std::vector<float> residual = random_tensor(kernel.layer->shape.output_elements() * kBatch, 2);
    std::vector<float> output = random_tensor(kernel.layer->shape.output_elements() * kBatch, 3);
    std::vector<float> expected;
    for (const float value : output) expected.push_back(rounded(element_of(precision), value));
    make_executor(choose_device("cuda:0"), *package)->run(kernel, kBatch, input, residual, output);
    CHECK(output == expected);  // the fake computes nothing, so what was there comes back, rounded
    // Two bytes for each value of four images, the last of which fills up.
    const auto bytes = static_cast<std::size_t>(kernel.layer->shape.input_elements()) * 4 * 2;
    CHECK(std::ranges::count(driver.allocations(), bytes) == 1);
    CHECK(driver.live().empty());
  }
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
  CHECK(count(kernel.layer->shape.input_elements()) == kInputBuffers);
  CHECK(count(kernel.layer->shape.output_elements()) == 2);  // output and residual
}

TEST_CASE("gpu_executor_gives_everything_back_when_a_call_fails") {
  const std::shared_ptr<Package> package = sample_package();
  const Kernel& kernel = package->manifest.kernels.front();
  const std::vector<float> input(static_cast<std::size_t>(kernel.layer->shape.input_elements()), 1.0F);
  int failures = 0;
  for (int call = 1;; ++call) {
    FakeDriver driver;
    driver.fail_at = call;
    std::vector<float> output = not_numbers(kernel.layer->shape.output_elements());
    try {
      const std::unique_ptr<Executor> executor = make_executor({.host = false, .ordinal = 0, .note = {}}, *package);
      executor->run(kernel, 1, input, {}, output);
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

TEST_CASE("the_kernel_for_a_batch_is_the_runtimes_choice") {
  FakeDriver driver;
  const std::shared_ptr<Package> package = sample_package();
  const Device device = Device::open(0);
  const LoadedPackage loaded(device, package, "sample");
  for (const int batch : {1, 2, 7, 8, 9, 31, 32, 33, 1000}) {
    CAPTURE(batch);
    for (const char* layer : {"conv1", "conv2"}) {
      const Kernel* kernel = kernel_for(package->manifest, layer, batch);
      REQUIRE(kernel != nullptr);
      CHECK(kernel->symbol == loaded.kernel(layer, batch).symbol());
    }
  }
  CHECK(kernel_for(package->manifest, "conv3", 1) == nullptr);
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
  const Kernel& kernel = package->manifest.kernels.front();
  const std::vector<float> input(static_cast<std::size_t>(kernel.layer->shape.input_elements()), 1.0F);
  std::vector<float> output = not_numbers(kernel.layer->shape.output_elements());
  const std::vector<std::uint8_t> live(4 * 8, 1);
  std::vector<std::uint8_t> marks(4 * 16, 7);
  const std::vector<std::uint8_t> before = marks;
  make_executor(choose_device("cuda:0"), *package)->run(kernel, 1, input, {}, output, {live, marks});
  CHECK(driver.launches().back().input_activity != nullptr);
  CHECK(driver.launches().back().output_activity != nullptr);
  CHECK(marks == before);  // the fake computes nothing
  CHECK(driver.live().empty());
}

TEST_CASE("bench_with_dead_inputs_has_maps_and_without_has_none") {
  FakeDriver driver;
  const std::shared_ptr<Package> package = sample_with_maps();
  const Kernel& kernel = package->manifest.kernels.front();
  const Bench bench(Device::open(0), *package, {.samples = 1, .copies = 1});
  CHECK(bench.time(kernel, 2).skipped == 0);
  CHECK(driver.launches().back().input_activity == nullptr);
  CHECK(driver.launches().back().output_activity == nullptr);
  CHECK(bench.time(kernel, 2, 0.0).skipped == 0);
  CHECK(driver.launches().back().input_activity != nullptr);
  CHECK(driver.launches().back().output_activity != nullptr);
  CHECK(bench.time(kernel, 2, 1.0).skipped == 1);
  // A 3x3 filter sees all four cells of the image: rarely are all dead.
  const double some = bench.time(kernel, 2, 0.75).skipped;
  CHECK(some > 0);
  CHECK(some < 0.75);
}
