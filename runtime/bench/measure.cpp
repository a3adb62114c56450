#include "runtime/bench/measure.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>

#include "ir/error.h"
#include "runtime/kernel_graph.h"

namespace burin {
namespace {

// Replays a graph on a stream.
using Replay = std::function<void(CUstream_st*)>;
// Makes the graph of so many launches.
using MakeGraph = std::function<Replay(int launches)>;

int choose_launches(const Device& device, const Stream& stream, const MakeGraph& graph_of) {
  constexpr int kReplays = 3;  // the first ones pay for loading code and data
  const std::vector<double> times = time_in_a_row(device, stream, graph_of(kMinLaunchesPerGraph), kReplays);
  const double per_launch = *std::min_element(times.begin(), times.end()) / kMinLaunchesPerGraph;
  if (per_launch <= 0) return kMaxLaunchesPerGraph;
  const double wanted = std::ceil(kGraphMicroseconds / per_launch);
  return static_cast<int>(std::clamp<double>(wanted, kMinLaunchesPerGraph, kMaxLaunchesPerGraph));
}

// `sorted` ascending and not empty; `share` 0..1.
double percentile(const std::vector<double>& sorted, double share) {
  const double position = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return std::lerp(sorted[below], sorted[above], position - static_cast<double>(below));
}

Measurement measure_graph(const Device& device, const Stream& stream, const MakeGraph& graph_of,
                          const MeasureOptions& options) {
  if (options.launches_per_graph < 0 || options.samples < 1 || options.warmup < 0) {
    fail(ErrorKind::usage, "a measurement of {} samples of {} launches after {} to warm up: none may be negative",
         options.samples, options.launches_per_graph, options.warmup);
  }
  const int launches =
      options.launches_per_graph > 0 ? options.launches_per_graph : choose_launches(device, stream, graph_of);
  const Replay replay = graph_of(launches);
  for (int i = 0; i < options.warmup; ++i) replay(stream);
  std::vector<double> samples = time_in_a_row(device, stream, replay, options.samples);
  for (double& sample : samples) sample /= launches;
  return summarize(std::move(samples), launches);
}

}  // namespace

std::vector<double> time_in_a_row(const Device& device, const Stream& stream,
                                  const std::function<void(CUstream_st*)>& enqueue, int count) {
  std::vector<Event> events;
  events.reserve(static_cast<std::size_t>(count) + 1);
  for (int i = 0; i <= count; ++i) events.emplace_back(device);
  events[0].record(stream);
  for (std::size_t i = 1; i < events.size(); ++i) {
    enqueue(stream);
    events[i].record(stream);
  }
  events.back().synchronize();
  std::vector<double> times;
  for (std::size_t i = 1; i < events.size(); ++i) times.push_back(events[i].microseconds_since(events[i - 1]));
  return times;
}

Measurement summarize(std::vector<double> samples_us, int launches_per_graph) {
  Measurement result;
  result.launches_per_graph = launches_per_graph;
  if (samples_us.empty()) return result;
  std::sort(samples_us.begin(), samples_us.end());
  result.min_us = samples_us.front();
  result.p10_us = percentile(samples_us, 0.10);
  result.median_us = percentile(samples_us, 0.50);
  result.p90_us = percentile(samples_us, 0.90);
  result.p99_us = percentile(samples_us, 0.99);
  result.mean_us = std::accumulate(samples_us.begin(), samples_us.end(), 0.0) / static_cast<double>(samples_us.size());
  result.samples_us = std::move(samples_us);
  return result;
}

Measurement measure(const Device& device, const Stream& stream, const std::function<void(CUstream_st*, int)>& enqueue,
                    const MeasureOptions& options) {
  const auto graph_of = [&](int launches) -> Replay {
    const auto graph = std::make_shared<const Graph>(Graph::capture(stream, [&](CUstream_st* target) {
      for (int i = 0; i < launches; ++i) enqueue(target, i);
    }));
    return [graph](CUstream_st* target) { graph->launch(target); };
  };
  return measure_graph(device, stream, graph_of, options);
}

Measurement measure_chain(const Device& device, const Stream& stream, const std::function<KernelLaunch(int)>& launch,
                          const MeasureOptions& options) {
  const auto graph_of = [&](int launches) -> Replay {
    std::vector<KernelLaunch> chain;
    std::vector<GraphEdge> edges;
    for (int i = 0; i < launches; ++i) {
      chain.push_back(launch(i));
      if (i > 0) edges.push_back(edge_between(chain, i - 1, i));
    }
    const auto graph = std::make_shared<const KernelGraph>(device.state(), chain, edges);
    return [graph](CUstream_st* target) { graph->launch(target); };
  };
  return measure_graph(device, stream, graph_of, options);
}

}  // namespace burin
