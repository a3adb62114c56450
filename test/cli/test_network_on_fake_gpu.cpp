// Whole networks on the driver that counts and fails on request.
#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "compiler/cli/network_bench.h"
#include "compiler/execute/executor.h"
#include "compiler/measure/tune_on_gpu.h"
#include "compiler/reference.h"
#include "ir/element_type.h"
#include "ir/error.h"
#include "ir/package/manifest_index.h"
#include "test/catch.h"
#include "test/package/sample_network.h"
#include "test/runtime/fake_driver.h"
#include "test/scratch_folder.h"
#include "test/thrown.h"

using namespace burin;
using namespace burin_test;
using burin_test::Contains;

namespace {

const DeviceChoice kFirstGpu{.host = false, .ordinal = 0, .note = {}};

Tensors sample_inputs(int batch) {
  return {random_tensor(std::int64_t{batch} * kSampleImageWords, 1),
          random_tensor(std::int64_t{batch} * kSampleFeatures, 2)};
}

bool all_nan(const std::vector<float>& values) {
  return std::ranges::all_of(values, [](float value) { return std::isnan(value); });
}

}  // namespace

TEST_CASE("gpu_network_is_launched_as_a_graph_twice_on_poison") {
  FakeDriver driver;
  const Package package = network_package();
  {
    const auto executor = make_executor(kFirstGpu, package);
    CHECK(executor->name() == "cuda:0 (Fake H200, sm_90)");
    const Tensors outputs = executor->run(package.manifest.programs[1], 5, sample_inputs(5));
    CHECK(driver.calls_of("cuGraphLaunch") == 2);
    // The fake computes nothing: what was poisoned comes back poisoned.
    REQUIRE(outputs.size() == 2);
    CHECK(outputs[0].size() == 5 * kSampleFeatures);
    CHECK(outputs[1].size() == 5 * kSampleTensorWords);
    CHECK((all_nan(outputs[0]) && all_nan(outputs[1])));
  }
  CHECK(driver.live().empty());
}

TEST_CASE("gpu_network_shows_each_step_what_it_reads_and_writes") {
  FakeDriver driver;
  const Package package = network_package();
  const Tensors inputs = sample_inputs(2);
  const auto executor = make_executor(kFirstGpu, package);
  std::vector<int> seen;
  executor->run(package.manifest.programs[0], 2, inputs, [&](const StepValues& values) {
    seen.push_back(values.step);
    CHECK(static_cast<int>(driver.launches().size()) == values.step + 1);
    CHECK(all_nan(values.output));
    if (values.step == kConv1) {
      REQUIRE(values.reads.size() == 1);
      CHECK(values.reads[0] == inputs[0]);
      CHECK(values.output.size() == 2 * kSampleTensorWords);
    }
    if (values.step == kAdd) CHECK(values.reads[1] == inputs[1]);
  });
  CHECK(seen == std::vector<int>{kConv1, kLeft, kRight, kFc, kAdd, kCopy});
  CHECK(driver.calls_of("cuGraphLaunch") == 0);
}

TEST_CASE("gpu_network_runs_a_batch_in_the_parts_that_the_runtime_would_choose") {
  FakeDriver driver;
  const Package package = network_package();
  const auto executor = make_executor(kFirstGpu, package);
  // 8 + 8 + 2, each launched twice.
  const Tensors outputs =
      run_programs(*executor, ManifestIndex(package.manifest).programs(kNetworkName), 18, sample_inputs(18));
  CHECK(outputs[0].size() == 18 * kSampleFeatures);
  CHECK(driver.calls_of("cuGraphLaunch") == 6);
}

TEST_CASE("gpu_network_gives_everything_back_when_a_call_fails") {
  const Package package = network_package();
  int failures = 0;
  for (int call = 1;; ++call) {
    FakeDriver driver;
    driver.fail_at = call;
    try {
      const auto executor = make_executor(kFirstGpu, package);
      executor->run(package.manifest.programs[0], 1, sample_inputs(1), [](const StepValues&) {});
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::device);
      ++failures;
    }
    CAPTURE(call, driver.failed_call());
    // A call that gives something back cannot give it back when it fails.
    if (!FakeDriver::is_release(driver.failed_call())) CHECK(driver.live().empty());
    if (driver.failed_call().empty()) break;  // there are no more calls
  }
  CHECK(failures > 20);
}

TEST_CASE("network_bench_times_the_graph_and_each_step") {
  FakeDriver driver;
  driver.microseconds_per_launch = 3;
  const Package package = network_package();
  const Device device = Device::open(0);
  const Stream stream(device);
  const LoadedNetwork network(LoadedPackage(device, std::make_shared<Package>(package), "sample"));
  const NetworkBench bench =
      bench_network(device, stream, network, package.manifest, 2, {}, {.samples = 7, .warmup = 2});
  CHECK(bench.schedule == "batch 2 runs as 2");
  CHECK(bench.times.latency.median_us == Approx(3 * kSampleSteps));
  CHECK(bench.times.latency.samples_us.size() == 7);
  CHECK(bench.times.back_to_back.median_us == Approx(3 * kSampleSteps));
  CHECK(bench.times.host_latency.median_us > 0);
  CHECK(bench.times.empty.median_us == 0);
  REQUIRE(bench.times.steps.size() == kSampleSteps);
  for (const Measurement& step : bench.times.steps) {
    CHECK(step.median_us == Approx(3));
    CHECK(step.samples_us.size() == 7);
  }
  CHECK(bench.times.sum_of_steps_us() == Approx(3 * kSampleSteps));
  CHECK(bench.arena_bytes > 0);
  REQUIRE(bench.steps.size() == kSampleSteps);
  CHECK(bench.steps[kConv1].op == "conv1");
  CHECK(bench.steps[kConv1].predicted_us.has_value());
  CHECK_FALSE(bench.steps[kFc].predicted_us.has_value());
  CHECK_THAT(bench.steps[kFc].kernel, Contains("blocks of"));
  CHECK(BURIN_THROWN(usage, bench_network(device, stream, network, package.manifest, 2, {}, {.samples = 0}))
            .has("0 samples"));
}

TEST_CASE("network_bench_keeps_the_device_busy_while_steps_are_enqueued") {
  FakeDriver driver;
  driver.microseconds_per_launch = 0.5;
  const Package package = network_package();
  const Device device = Device::open(0);
  const Stream stream(device);
  const LoadedNetwork network(LoadedPackage(device, std::make_shared<Package>(package), "sample"));
  bench_network(device, stream, network, package.manifest, 2, {}, {.samples = 1, .warmup = 0});
  // One alone, one in a row; then at 3 us each as many as last longer than it takes to enqueue seven steps.
  CHECK(driver.calls_of("cuGraphLaunch") == 2 + 20);
}

TEST_CASE("networks_take_turns_and_give_everything_back") {
  FakeDriver driver;
  driver.microseconds_per_launch = 3;
  const auto package = std::make_shared<const Package>(network_package());
  const auto program = std::make_shared<const Program>(package->manifest.programs[0]);
  const auto short_one = std::make_shared<Program>(*program);
  short_one->steps.pop_back();
  {
    const NetworkTimer time = network_timer({"sm_90"});
    const std::array<TimedProgram, 2> programs = {TimedProgram{package, program}, {package, short_one}};
    const std::vector<double> us = time(programs, 7);
    REQUIRE(us.size() == 2);
    CHECK(us[0] == Approx(3 * kSampleSteps));
    CHECK(us[1] == Approx(3 * (kSampleSteps - 1)));
    CHECK(driver.calls_of("cuGraphLaunch") == 2 * (3 + 7 * 40));
    // The package stays loaded, though another program of it is timed.
    const int loads = driver.calls_of("cuModuleLoadData") + driver.calls_of("cuModuleLoadDataEx");
    CHECK(loads > 0);
    time({{programs[1]}}, 1);
    CHECK(driver.calls_of("cuModuleLoadData") + driver.calls_of("cuModuleLoadDataEx") == loads);
    short_one->steps[0].kernel = "burin_of_nobody";
    CHECK_THAT(BURIN_THROWN(usage, time(programs, 1)).text, Contains("burin_of_nobody"));
  }
  CHECK(driver.live().empty());
}

TEST_CASE("network_bench_prints_a_summary_and_the_steps") {
  FakeDriver driver;
  const ScratchFolder folder;
  const Package package = network_package();
  write_package(package, folder / "p.burin");
  const Device device = Device::open(0);
  const Stream stream(device);
  const LoadedNetwork network(LoadedPackage(device, folder / "p.burin"));
  NetworkBenchArguments arguments;
  arguments.package = folder / "p.burin";
  std::vector<NetworkBench> benches;
  for (const int batch : {2, 5}) {
    benches.push_back(bench_network(device, stream, network, package.manifest, batch, {}, {.samples = 3, .warmup = 0}));
  }
  const std::string text = print_benches(arguments, device.info(), benches);
  CHECK_THAT(text, Contains("on Fake H200 (sm_90); 100 samples"));
  CHECK_THAT(text, Contains("5 of 8") && Contains("30.0/30.0/30.0"));
  CHECK_THAT(text, Contains(" (conv_dense 4.0 us)"));  // what conv1 was compared with
  CHECK_THAT(text, Contains("none overlaps another") && Contains("16.7 %") && Contains("6 steps"));
  const auto document = nlohmann::json::parse(benches_json(arguments, device.info(), benches));
  REQUIRE(document["network"].size() == 2);
  const auto& entry = document["network"][1];
  CHECK(entry["batch"] == 5);
  CHECK(entry["schedule"] == "batch 5 runs as 5 of 8");
  CHECK(entry["latency"]["median_us"] == Approx(30));
  REQUIRE(entry["steps"].size() == kSampleSteps);
  CHECK(entry["steps"][0]["operator"] == "conv1");
  CHECK(entry["steps"][0]["predicted_us"].is_null());  // planned for another batch
  CHECK(entry["steps"][0]["options"][1]["provider"] == "conv_dense");
  CHECK(entry["steps"][0]["options"][1]["us"] == 4);
  CHECK(entry["steps"][0]["options"][1]["source"] == "measured");
  CHECK(entry["steps"][1]["options"].empty());
  CHECK(entry["steps"][0]["time"]["median_us"] == Approx(5));
}

TEST_CASE("gpu_network_of_loose_halves_is_given_and_gives_them_without_a_gap") {
  FakeDriver driver;
  const Package package = loose_network_package();
  REQUIRE(verify(package) == std::vector<std::string>{});
  const auto executor = make_executor(kFirstGpu, package);
  const Program& program = package.manifest.programs[0];
  for (const int batch : {1, 2}) {  // 27 and 54 halves
    const Tensors inputs = {rounded(ElementType::f16, random_tensor(std::int64_t{batch} * 27, 1))};
    const Tensors outputs = executor->run(program, batch, inputs, [&](const StepValues& values) {
      if (values.step == 0) CHECK(values.reads[0] == inputs[0]);
      CHECK(all_nan(values.output));
    });
    REQUIRE(outputs.size() == 1);
    CHECK(outputs[0].size() == static_cast<std::size_t>(batch) * 27);
    CHECK(all_nan(outputs[0]));
  }
}

TEST_CASE("network_bench_gives_loose_halves_values_that_they_hold") {
  FakeDriver driver;
  driver.microseconds_per_launch = 3;
  const Package package = loose_network_package();
  const Device device = Device::open(0);
  const Stream stream(device);
  const LoadedNetwork network(LoadedPackage(device, std::make_shared<Package>(package), "sample"));
  const NetworkBench bench =
      bench_network(device, stream, network, package.manifest, 3, {}, {.samples = 1, .warmup = 0});
  CHECK(bench.schedule == "batch 3 runs as 2 + 1 of 2");
  CHECK(bench.steps.size() == 4);
}
