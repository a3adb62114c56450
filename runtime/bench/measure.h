// Times what the device does, by replaying a CUDA graph: what the host needs to launch does not count.
#pragma once

#include <functional>
#include <vector>

#include "runtime/burin/device_memory.hpp"
#include "runtime/kernel_launch.h"

namespace burin {

struct MeasureOptions {
  int launches_per_graph = 0;  // 0: as many as fill kGraphMicroseconds
  int samples = 100;           // replays that are timed
  int warmup = 5;              // replays before them
};

// A graph lasts about this long, so that the gap between two replays is small against it.
inline constexpr double kGraphMicroseconds = 500;
inline constexpr int kMinLaunchesPerGraph = 8;
inline constexpr int kMaxLaunchesPerGraph = 2000;

// Microseconds per launch; each sample is the mean over one replay.
struct Measurement {
  int launches_per_graph = 0;
  std::vector<double> samples_us;  // ascending
  double min_us = 0, p10_us = 0, median_us = 0, p90_us = 0, p99_us = 0, mean_us = 0;
};

// `enqueue(stream, i)` puts launch i of the graph on the stream; several kernels or buffers may take turns by `i`, for
// instance so that every launch finds its code cold. Throws Error(usage) for options that are not positive.
Measurement measure(const Device& device, const Stream& stream, const std::function<void(CUstream_st*, int)>& enqueue,
                    const MeasureOptions& options = {});

// The same of launches that follow each other as the steps of a network do: each may begin before the one before it has
// ended, where its code awaits it.
Measurement measure_chain(const Device& device, const Stream& stream, const std::function<KernelLaunch(int)>& launch,
                          const MeasureOptions& options = {});

// Microseconds of each of `count` calls of `enqueue`, between events on the stream. All are enqueued at once: the
// device goes from one to the next without the host.
std::vector<double> time_in_a_row(const Device& device, const Stream& stream,
                                  const std::function<void(CUstream_st*)>& enqueue, int count);

// The statistics of samples in any order. A percentile is interpolated between its neighbours. No samples: all zero.
Measurement summarize(std::vector<double> samples_us, int launches_per_graph);

}  // namespace burin
