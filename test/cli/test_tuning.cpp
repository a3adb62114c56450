// burin tune where no GPU is needed: the measurer on the driver that fakes one, and the reports.

#include <algorithm>
#include <cmath>

#include "compiler/assemble/assemble.h"
#include "compiler/cli/tuning_report.h"
#include "compiler/measure/tune_on_gpu.h"
#include "ir/error.h"
#include "ir/kernel_program.h"
#include "test/catch.h"
#include "test/ir/random_layers.h"
#include "test/package/sample_plans.h"
#include "test/runtime/fake_driver.h"
#include "test/runtime/sample_package.h"
#include "test/scoped_variable.h"
#include "test/skip.h"
#include "test/thrown.h"

using namespace burin;
using namespace burin_test;
using burin_test::Contains;

namespace {

Package one_kernel(const EditKernels& edit = {}) {
  const std::shared_ptr<Package> sample = sample_package({}, edit);
  Package package = *sample;
  package.manifest.kernels.resize(1);
  package.manifest.programs = {program_of(package.manifest.kernels[0], 1)};
  std::erase_if(package.files, [&](const auto& file) {
    const auto& binaries = package.manifest.kernels[0].binaries;
    return std::none_of(binaries.begin(), binaries.end(), [&](const auto& b) { return b.path == file.first; });
  });
  return package;
}

TuningRecord sample_tuning() {
  TuningRecord tuning;
  tuning.device = "NVIDIA H200";
  tuning.arch = "sm_90";
  tuning.driver_version = 13020;
  tuning.code_copies = 8;
  const auto add = [&](const std::string& plan, double us, const std::string& fault = "") {
    TuningCandidate candidate;
    candidate.provider = "conv_baked";
    candidate.plan = plan;
    candidate.predicted_us = 7;
    candidate.fault = fault;
    if (fault.empty()) {
      candidate.us = us;
      candidate.samples = 50;
      candidate.error = 0.25;
    }
    tuning.candidates.push_back(candidate);
  };
  add("tile=1x1x1", 12);
  add("tile=2x2x2", 0, "wrong: image 0");
  add("tile=3x3x3", 8);
  tuning.chosen = 2;
  return tuning;
}

Manifest tuned_manifest() {
  Manifest manifest = one_kernel().manifest;
  manifest.kernels[0].tuning = sample_tuning();
  return manifest;
}

}  // namespace

TEST_CASE("tuning_measures_on_the_first_gpu_of_a_chosen_architecture") {
  FakeDriver driver;
  driver.devices = {{.name = "Old", .major = 8}, {.name = "New", .major = 9}};
  CHECK(GpuMeasurer({"sm_90"}).device().name == "New");
  CHECK(GpuMeasurer({"sm_90", "sm_80"}).device().name == "Old");
  const TuningDevice device = GpuMeasurer({"sm_80"}).device();
  CHECK(device.arch == "sm_80");
  CHECK(device.driver_version > 0);
  CHECK(device.code_copies == 8);
}

TEST_CASE("the_measurer_says_which_libraries_are_there_and_why_others_are_not") {
  const std::string nowhere = "/nowhere/lib.so";
  const auto look = [&](const std::string& cudnn, const std::string& cublaslt, std::vector<std::string>& missing) {
    const ScopedVariable first("BURIN_CUDNN", cudnn.c_str()), second("BURIN_CUBLASLT", cublaslt.c_str());
    FakeDriver driver;
    GpuMeasurer measurer({"sm_90"});
    CHECK(measurer.device().libraries.empty());
    missing = measurer.missing_libraries();
    const TuningDevice device = measurer.device();
    for (const LibraryVersion& one : device.libraries) CHECK(device.has(one.library));
    CHECK(device.has(std::nullopt));
    return text_of(device.libraries);
  };
  std::vector<std::string> missing;
  CHECK(look(BURIN_FAKE_CUDNN, BURIN_FAKE_CUBLASLT, missing) == "cuDNN 9.19.0, cuBLASLt 13.0.2");
  CHECK(missing.empty());
  CHECK(look(BURIN_FAKE_CUDNN, nowhere, missing) == "cuDNN 9.19.0");
  REQUIRE(missing.size() == 1);
  CHECK_THAT(missing[0], Contains("no cuBLASLt: ") && Contains(nowhere));
  CHECK(look(nowhere, BURIN_FAKE_CUBLASLT, missing) == "cuBLASLt 13.0.2");
  CHECK(look(nowhere, nowhere, missing).empty());
  CHECK(missing.size() == 2);
}

TEST_CASE("tuning_without_a_fitting_gpu_is_a_device_error") {
  FakeDriver driver;
  driver.devices = {{.name = "Old", .major = 8}};
  CHECK(BURIN_THROWN(device, GpuMeasurer({"sm_90"})).text ==
        "tune measures on a GPU of one of --arch sm_90, and cuda:0 is sm_80; name its architecture, too");
  driver.devices.clear();
  CHECK_THAT(BURIN_THROWN(device, GpuMeasurer({"sm_90"})).text, Contains("tune measures on a GPU, and none was found"));
}

TEST_CASE("the_measurer_runs_and_times_one_kernel_and_gives_everything_back") {
  FakeDriver driver;
  const Package package = one_kernel();
  const ConvShape& shape = package.manifest.kernels[0].layer->shape;
  const int batch = 3;
  const std::vector<float> input(static_cast<std::size_t>(shape.input_elements() * batch), 1.0F);
  std::vector<float> output(static_cast<std::size_t>(shape.output_elements() * batch), 1.0F);
  {
    GpuMeasurer measurer({"sm_90"});
    measurer.run(package, batch, input, {}, output);
    REQUIRE(driver.graphs().size() == 1);
    REQUIRE(driver.graphs()[0].nodes.size() == 1);
    CHECK(driver.graphs()[0].nodes[0].batch == batch);
    CHECK(std::ranges::all_of(output, [](float value) { return std::isnan(value); }));  // the fake computes nothing
    const LaunchTime times = measurer.time(package, batch, {});
    CHECK(times.us == Approx(driver.microseconds_per_launch));
    CHECK(times.samples == 50);
    CHECK(measurer.usable());
  }
  CHECK(driver.live().empty());
}

TEST_CASE("the_measurer_times_kernels_of_a_task_in_turns_on_the_same_tensors") {
  FakeDriver driver;
  const Package package = one_kernel();
  const int batch = 3;
  const auto buffers_for = [&](std::size_t kernels) {
    GpuMeasurer measurer({"sm_90"});
    const std::vector<const Package*> packages(kernels, &package);
    const int before = driver.calls_of("cuMemAlloc");
    const std::vector<Timing> timings = measurer.time_in_turns(packages, batch, {});
    REQUIRE(timings.size() == kernels);
    for (const Timing& timing : timings) {
      CHECK_FALSE(timing.fault);
      CHECK(timing.time.us == Approx(driver.microseconds_per_launch));
      CHECK(timing.time.samples == 50);
    }
    return driver.calls_of("cuMemAlloc") - before;
  };
  const int one = buffers_for(1);
  CHECK(one >= 2);  // an input and an output
  CHECK(buffers_for(3) <= 3 * (one - 2) + 2);
  CHECK(driver.live().empty());
}

TEST_CASE("a_kernel_that_cannot_be_loaded_takes_no_turn_and_the_others_do") {
  FakeDriver driver;
  const Package good = one_kernel();
  Package bad = good;
  bad.manifest.kernels[0].symbol = "absent";
  for (KernelBinary& binary : bad.manifest.kernels[0].binaries) binary.arch = "sm_75";  // no code for this GPU
  GpuMeasurer measurer({"sm_90"});
  const std::vector<const Package*> packages = {&bad, &good, &bad, &good};
  const std::vector<Timing> timings = measurer.time_in_turns(packages, 1, {});
  for (const std::size_t wrong : {0, 2}) {
    REQUIRE(timings[wrong].fault);
    CHECK(timings[wrong].time.us == 0);
    CHECK_FALSE(timings[wrong + 1].fault);
    CHECK(timings[wrong + 1].time.us == Approx(driver.microseconds_per_launch));
  }
}

TEST_CASE("the_measurer_runs_kernels_with_activity_maps_where_everything_is_live") {
  FakeDriver driver;
  const Package package = one_kernel([](std::vector<Kernel>& kernels) {
    edit_baked(kernels.front(), [](BakedPlan& plan) {
      plan.skips = ActivityMap{1, 7, 7};
      plan.marks = true;
    });
  });
  const ConvShape& shape = package.manifest.kernels[0].layer->shape;
  const std::vector<float> input(static_cast<std::size_t>(shape.input_elements()), 1.0F);
  std::vector<float> output(static_cast<std::size_t>(shape.output_elements()), 1.0F);
  {
    GpuMeasurer measurer({"sm_90"});
    measurer.run(package, 1, input, {}, output);
    CHECK(std::ranges::all_of(output, [](float value) { return std::isnan(value); }));
    CHECK(measurer.time(package, 1, {}).us == Approx(driver.microseconds_per_launch));
  }
  CHECK(driver.live().empty());
}

TEST_CASE("tuning_where_no_kernel_can_be_loaded_is_one_clear_error") {
  if (find_assembler().kind == AssemblerInfo::Kind::none) BURIN_SKIP("no assembler");
  FakeDriver driver;  // knows no symbols of real machine code
  Network network;
  network.source = "test.npz";
  ConvShape shape;
  shape.in_channels = shape.out_channels = 4;
  shape.in_h = shape.in_w = 6;
  network.layers = {make_layer("conv", shape, 0.5)};
  separate_layers(network);
  CompileOptions options;
  options.libraries = false;  // those of the machine would take the fake driver for a GPU
  const Thrown thrown = BURIN_THROWN(device, tune_on_gpu(network, options, {.plans = 2, .budget = TimeBudget(60)}, {}));
  CHECK_THAT(thrown.text,
             Contains("layer 'conv', batch 1: none of 2 plans can be used") && Contains("cuModuleGetFunction failed"));
  CHECK(driver.loaded_code().size() == 2);
  CHECK(driver.live().empty());
}

TEST_CASE("the_measurer_notices_a_device_that_is_lost") {
  FakeDriver driver;
  GpuMeasurer measurer({"sm_90"});
  driver.fail_call = "cuMemAlloc";
  CHECK_FALSE(measurer.usable());
}

TEST_CASE("the_summary_shows_the_gain_over_the_planners_choice") {
  const std::string text = tuning_summary(tuned_manifest());
  CHECK_THAT(text, Contains("conv1") && Contains("8.00") && Contains("12.0") && Contains("1.50x") &&
                       Contains("3, 1 failed") && Contains("geometric mean"));
  Manifest failed = tuned_manifest();
  failed.kernels[0].tuning->candidates[0] = failed.kernels[0].tuning->candidates[1];
  CHECK_THAT(tuning_summary(failed), !Contains("x  "));  // no gain over what cannot be measured
  CHECK_THAT(tuning_summary(failed), Contains("3, 2 failed"));
}

TEST_CASE("the_table_of_plans_is_fastest_first_with_the_faults_last") {
  const std::string text = tuning_table(sample_tuning());
  CHECK_THAT(text, burin_test::StartsWith(
                       "3 plans on NVIDIA H200 (sm_90, driver for CUDA 13.2); a launch in a graph, 8 copies"));
  const std::size_t best = text.find("tile=3x3x3"), own = text.find("tile=1x1x1"), wrong = text.find("tile=2x2x2");
  CHECK(best < own);
  CHECK(own < wrong);
  CHECK(wrong < text.size());
  const auto line = [&](std::size_t start) { return text.substr(start, text.find('\n', start) - start); };
  CHECK_THAT(line(best), Contains("chosen") && Contains("8.00") && Contains("0.250"));
  CHECK_THAT(line(own), Contains("the models' choice"));
  CHECK_THAT(line(wrong), Contains("wrong: image 0"));
}

TEST_CASE("the_json_of_tuning_has_a_fault_or_figures") {
  const nlohmann::ordered_json json = to_json(sample_tuning());
  CHECK(json["device"] == "NVIDIA H200");
  CHECK(json["chosen"] == 2);
  CHECK(json["candidates"][2]["us"] == 8);
  CHECK(json["candidates"][1]["fault"] == "wrong: image 0");
  CHECK_FALSE(json["candidates"][1].contains("us"));
}
