#include "compiler/measure/tune_on_gpu.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

#include "compiler/assemble/assemble.h"
#include "compiler/execute/executor.h"
#include "compiler/make_kernel.h"
#include "compiler/measure/layer_times.h"
#include "compiler/program_tasks.h"
#include "ir/error.h"
#include "runtime/burin/device_memory.hpp"
#include "runtime/device_state.h"
#include "runtime/library/cudnn_convolution.h"

namespace burin {
namespace {

// Fewer than `bench` takes: a median of 50 replays of half a millisecond repeats within a percent.
constexpr int kSamples = 50, kCopies = 8;
// A candidate that calls a library is measured as that call, or not at all.
BenchOptions bench_options() {
  return {.samples = kSamples, .copies = kCopies, .load = tool_load_options(LibraryUse::required)};
}

Device open_one_of(const std::vector<std::string>& archs) {
  const int count = gpu_count();
  if (count == 0) {
    fail(ErrorKind::device,
         "--tune measures on a GPU, and none was found (burin doctor says what is missing); without --tune the cost "
         "model chooses, which needs none");
  }
  std::string found;
  for (int i = 0; i < count; ++i) {
    Device device = Device::open(i);
    if (std::find(archs.begin(), archs.end(), device.info().arch()) != archs.end()) return device;
    found += fmt::format("{}cuda:{} is {}", i == 0 ? "" : ", ", i, device.info().arch());
  }
  fail(ErrorKind::device, "--tune measures on a GPU of one of --arch {}, and {}; name its architecture, too",
       fmt::join(archs, ","), found);
}

std::vector<std::string> faults_of(const std::vector<TunedKernel>& tuned) {
  std::vector<std::string> notes;
  for (const TunedKernel& kernel : tuned) {
    for (const TuningCandidate& candidate : kernel.evidence.candidates) {
      if (candidate.fault.empty()) continue;
      notes.push_back(fmt::format("layer '{}', batch {}: {} {} was left out: {}", kernel.layer, kernel.batch,
                                  candidate.provider, candidate.plan, candidate.fault));
    }
  }
  return notes;
}

}  // namespace

GpuMeasurer::GpuMeasurer(const std::vector<std::string>& archs) : device_(open_one_of(archs)) {}

TuningDevice GpuMeasurer::device() const {
  const DeviceInfo& info = device_.info();
  return {info.name, info.arch(), info.driver_version, kCopies, libraries_};
}

void GpuMeasurer::run(const Package& package, int batch, std::span<const float> input, std::span<const float> residual,
                      std::span<float> output) {
  const std::unique_ptr<Executor> executor =
      make_gpu_executor(device_, package, tool_load_options(LibraryUse::required));
  const Program& program = package.manifest.programs.front();
  Tensors inputs = {{input.begin(), input.end()}};
  if (!residual.empty()) inputs.emplace_back(residual.begin(), residual.end());
  for (const Buffer* map : program.inputs()) {
    if (map->map) inputs.emplace_back(static_cast<std::size_t>(program.bytes(*map, batch)), 1.0F);  // all is live
  }
  const Tensors made = executor->run(program, batch, inputs);
  std::ranges::copy(made.front(), output.begin());
}

LaunchTime GpuMeasurer::time(const Package& package, int batch, std::span<const float> input) {
  const Kernel& kernel = package.manifest.kernels.front();
  const Bench bench(device_, package, bench_options());
  const double us = bench.time_in_chain(kernel, batch, {.dead = {}, .zeros = {}, .values = input}).median_us;
  return {us, kSamples, bench.workspace_bytes(kernel, batch)};
}

std::string GpuMeasurer::missing_library() {
  try {
    libraries_ = fmt::format("cuDNN {}", device_.state()->cudnn->get(tool_load_options().cudnn)->library().version());
    return {};
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::device) throw;
    return error.what();
  }
}

bool GpuMeasurer::usable() {
  try {
    DeviceBuffer buffer(device_, sizeof(float));
    buffer.fill(0);
    device_.synchronize();
    return true;
  } catch (const Error&) {
    return false;  // the fault that brought it here stays until the process ends
  }
}

TunedNetwork tune_on_gpu(const Network& network, const CompileOptions& options, int plans, double budget_s,
                         const std::function<void(const TuneProgress&)>& progress) {
  GpuMeasurer measurer(options.archs);
  TunedNetwork tuned;
  if (options.libraries) {
    const std::string missing = measurer.missing_library();
    if (!missing.empty()) tuned.notes.push_back(fmt::format("--tune measures no call of a library: {}", missing));
  }
  if (find_assembler().kind == AssemblerInfo::Kind::none) {
    fail(ErrorKind::unsupported, "--tune measures machine code, and there is no assembler: {}", find_assembler().note);
  }
  const TuneOptions tune_options{.plans = plans, .budget_s = budget_s, .jobs = options.jobs};
  const std::string arch = measurer.device().arch;
  const TuningTasks tuning = tuning_tasks(network, options);
  const std::vector<Task>& tasks = tuning.tasks;
  tuned.kernels = tune_tasks(
      tasks, options, tune_options,
      [&](const Task& task, const Candidate& candidate) { return compile_candidate(task, candidate, options, arch); },
      measurer, progress);
  std::ranges::move(faults_of(tuned.kernels), std::back_inserter(tuned.notes));
  if (tuned.kernels.size() < tasks.size()) {
    tuned.notes.push_back(
        fmt::format("--tune-budget: the time sufficed for {} of {} kernels, those with the most work; the others are "
                    "the models' choice",
                    tuned.kernels.size(), tasks.size()));
  }
  return tuned;
}

}  // namespace burin
