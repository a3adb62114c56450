#include "runtime/bench/measure_network.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "ir/error.h"

namespace burin {
namespace {

// What the host takes to enqueue a step and an event, at most: so long the device must be kept busy before, or it would
// wait for the host between steps.
constexpr double kEnqueueMicroseconds = 8;
constexpr int kMostLaunchesBefore = 1000;

void time_single_launches(const Device& device, const Stream& stream, const NetworkRun& run, int samples,
                          NetworkTimes& times) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> on_device, on_host;
  Event begin(device), end(device);
  for (int i = 0; i < samples; ++i) {
    stream.synchronize();
    const Clock::time_point start = Clock::now();
    begin.record(stream);
    run.launch(stream);
    end.record(stream);
    end.synchronize();
    on_host.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
    on_device.push_back(end.microseconds_since(begin));
  }
  times.latency = summarize(std::move(on_device), 1);
  times.host_latency = summarize(std::move(on_host), 1);
}

void time_steps(const Device& device, const Stream& stream, const NetworkRun& run, int samples, NetworkTimes& times) {
  const int steps = run.steps();
  const double enqueue_us = kEnqueueMicroseconds * (steps + 1);
  const double launch_us = std::max(1.0, times.back_to_back.median_us);
  const int before = static_cast<int>(std::min<double>(std::ceil(enqueue_us / launch_us) + 1, kMostLaunchesBefore));
  // Before the first step, behind each, and one more with nothing in between.
  std::vector<Event> events;
  for (int i = 0; i < steps + 2; ++i) events.emplace_back(device);
  std::vector<std::vector<double>> intervals(static_cast<std::size_t>(steps) + 1);
  for (int sample = 0; sample < samples; ++sample) {
    for (int i = 0; i < before; ++i) run.launch(stream);
    events.front().record(stream);
    for (int i = 0; i < steps; ++i) {
      run.launch_step(i, stream);
      events[static_cast<std::size_t>(i) + 1].record(stream);
    }
    events.back().record(stream);
    events.back().synchronize();
    for (std::size_t i = 0; i < intervals.size(); ++i) {
      intervals[i].push_back(events[i + 1].microseconds_since(events[i]));
    }
  }
  times.empty = summarize(std::move(intervals.back()), 1);
  intervals.pop_back();
  for (std::vector<double>& step : intervals) times.steps.push_back(summarize(std::move(step), 1));
}

}  // namespace

double NetworkTimes::sum_of_steps_us() const {
  double sum = 0;
  for (const Measurement& step : steps) sum += step.median_us;
  return sum;
}

NetworkTimes measure_network(const Device& device, const Stream& stream, const NetworkRun& run,
                             const NetworkMeasureOptions& options) {
  if (options.samples < 1 || options.warmup < 0) {
    fail(ErrorKind::usage, "a measurement of {} samples after {} launches to warm up: none may be negative",
         options.samples, options.warmup);
  }
  for (int i = 0; i < options.warmup; ++i) run.launch(stream);
  NetworkTimes times;
  time_single_launches(device, stream, run, options.samples, times);
  const auto launch = [&](CUstream_st* target) { run.launch(target); };
  times.back_to_back = summarize(time_in_a_row(device, stream, launch, options.samples), 1);
  time_steps(device, stream, run, options.samples, times);
  return times;
}

}  // namespace burin
