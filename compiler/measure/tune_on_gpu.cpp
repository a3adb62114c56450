#include "compiler/measure/tune_on_gpu.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

#include "compiler/assemble/assemble.h"
#include "compiler/execute/executor.h"
#include "compiler/kernel_cache.h"
#include "compiler/make_kernel.h"
#include "compiler/measure/layer_times.h"
#include "compiler/measure/network_times.h"
#include "compiler/program_tasks.h"
#include "compiler/tune/tuning_task.h"
#include "ir/error.h"
#include "runtime/burin/device_memory.hpp"
#include "runtime/device_state.h"
#include "runtime/library/library_handle.h"

namespace burin {
namespace {

// Fewer than `bench` takes: a median of 50 replays of half a millisecond repeats within a percent.
constexpr int kSamples = 50, kCopies = 8;
constexpr int kTurns = 5;  // of each of several kernels, which share the samples
// A candidate that calls a library is measured as that call, or not at all.
BenchOptions bench_options(int samples) {
  return {.samples = samples, .copies = kCopies, .load = tool_load_options(LibraryUse::required)};
}

Device open_one_of(const std::vector<std::string>& archs, const MeasuringCommand& command) {
  const int count = gpu_count();
  if (count == 0) {
    fail(ErrorKind::device, "{} measures on a GPU, and none was found (burin doctor says what is missing); {}",
         command.name, command.otherwise);
  }
  std::string found;
  for (int i = 0; i < count; ++i) {
    Device device = Device::open(i);
    if (std::find(archs.begin(), archs.end(), device.info().arch()) != archs.end()) return device;
    found += fmt::format("{}cuda:{} is {}", i == 0 ? "" : ", ", i, device.info().arch());
  }
  fail(ErrorKind::device, "{} measures on a GPU of one of --arch {}, and {}; name its architecture, too", command.name,
       fmt::join(archs, ","), found);
}

// A kernel that takes its turn with others.
struct Contender {
  std::unique_ptr<Bench> bench;
  Bench::Chain chain;
  std::vector<double> turns_us;  // the median of each turn
};

std::string why_not_all(const Tuned& tuned, const TuneOptions& options) {
  std::vector<std::string> reasons;
  if (tuned.was_time_up) reasons.push_back("those that take most of the time, as far as --budget sufficed");
  if (!options.providers.empty()) reasons.push_back("those that one of --providers can make");
  return reasons.empty() ? "" : fmt::format(", {}", fmt::join(reasons, ", and of these "));
}

std::vector<std::string> faults_of(const std::vector<TunedKernel>& tuned) {
  std::vector<std::string> notes;
  for (const TunedKernel& kernel : tuned) {
    for (const TuningCandidate& candidate : kernel.evidence.candidates) {
      if (candidate.fault.empty() || candidate.fault == kNotMeasured) continue;
      const TensorFormat& written = kernel.formats.output;
      notes.push_back(fmt::format("layer '{}', batch {}{}: {} {} was left out: {}", kernel.layer, kernel.batch,
                                  written.is_plain() ? "" : fmt::format(", in {}", to_string(written.layout)),
                                  candidate.provider, candidate.plan, candidate.fault));
    }
  }
  return notes;
}

}  // namespace

GpuMeasurer::GpuMeasurer(const std::vector<std::string>& archs, const MeasuringCommand& command)
    : device_(open_one_of(archs, command)) {}

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

std::vector<Timing> GpuMeasurer::time_in_turns(std::span<const Package* const> packages, int batch,
                                               std::span<const float> input) {
  const int turns = packages.size() > 1 ? kTurns : 1;
  std::vector<Timing> timings(packages.size());
  std::vector<Contender> contenders(packages.size());
  const auto attempt = [&](std::size_t i, const auto& work) {
    if (timings[i].fault) return;
    try {
      work(contenders[i]);
    } catch (const Error& error) {
      timings[i].fault = error;
      contenders[i].chain = {};  // which needs the bench
      contenders[i].bench.reset();
    }
  };
  const Bench::Chain* like = nullptr;
  for (std::size_t i = 0; i < packages.size(); ++i) {
    attempt(i, [&](Contender& contender) {
      const Kernel& kernel = packages[i]->manifest.kernels.front();
      contender.bench = std::make_unique<Bench>(device_, *packages[i], bench_options(kSamples / turns));
      contender.chain = contender.bench->chain(kernel, batch, {.dead = {}, .zeros = {}, .values = input}, like);
      timings[i].time.workspace_bytes = contender.bench->workspace_bytes(kernel, batch);
      like = &contender.chain;
    });
  }
  for (int turn = 0; turn < turns; ++turn) {
    for (std::size_t i = 0; i < packages.size(); ++i) {
      attempt(i, [](Contender& contender) { contender.turns_us.push_back(contender.chain.measure().median_us); });
    }
  }
  for (std::size_t i = 0; i < packages.size(); ++i) {
    attempt(i, [&](const Contender& contender) {
      timings[i].time.us = summarize(contender.turns_us, 1).median_us;
      timings[i].time.samples = kSamples / turns * turns;
    });
  }
  return timings;
}

std::vector<std::string> GpuMeasurer::missing_libraries() {
  std::vector<std::string> missing;
  libraries_.clear();
  for (const Library library : kLibraries) {
    try {
      libraries_.push_back({library, device_.state()->libraries->get(library, tool_candidates(library))->version()});
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::device) throw;
      missing.emplace_back(error.what());
    }
  }
  return missing;
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

void check_can_measure(const std::vector<std::string>& archs, const MeasuringCommand& command) {
  open_one_of(archs, command);
  if (find_assembler().kind != AssemblerInfo::Kind::none) return;
  fail(ErrorKind::unsupported, "{} measures machine code, and there is no assembler: {}", command.name,
       find_assembler().note);
}

TunedNetwork tune_on_gpu(const ProgramGraphs& graphs, const CompileOptions& options, const TuneOptions& tune_options,
                         const std::function<void(const TuneProgress&)>& progress) {
  check_can_measure(options.archs);
  GpuMeasurer measurer(options.archs);
  TunedNetwork network;
  if (options.libraries) {
    for (const std::string& missing : measurer.missing_libraries()) {
      network.notes.push_back(fmt::format("tune measures no call of a library: {}", missing));
    }
  }
  const std::string arch = measurer.device().arch;
  TuneOptions keeping = tune_options;
  keeping.keep = [&](const Task& task, const Candidate& candidate, const Package& compiled) {
    keep_candidate(task, candidate, options, arch, compiled);
  };
  Tuned tuned = tune_graphs(
      graphs, options, keeping,
      [&](const Task& task, const Candidate& candidate) { return compile_candidate(task, candidate, options, arch); },
      measurer, progress);
  std::ranges::move(faults_of(tuned.kernels), std::back_inserter(network.notes));
  std::ranges::move(tuned.notes, std::back_inserter(network.notes));
  if (tuned.from_cache > 0) {
    network.notes.push_back(
        fmt::format("{} of {} times are of earlier runs, from {} (--anew measures all of them again)", tuned.from_cache,
                    tuned.from_cache + tuned.measured, options.cache->folder()));
  }
  if (tuned.left_to_models > 0) {
    network.notes.push_back(fmt::format("{} of {} kernels were measured{}; the others are the models' choice",
                                        tuned.tasks - tuned.left_to_models, tuned.tasks,
                                        why_not_all(tuned, tune_options)));
  }
  network.kernels = std::move(tuned.kernels);
  return network;
}

NetworkTimer network_timer(const std::vector<std::string>& archs) { return GpuNetworkTimer(open_one_of(archs, {})); }

}  // namespace burin
