// Times a whole network: launches of its graph, and its steps one by one.
#pragma once

#include <vector>

#include "runtime/bench/measure.h"
#include "runtime/burin/network.hpp"

namespace burin {

struct NetworkMeasureOptions {
  int samples = 100;  // of each figure
  int warmup = 5;     // launches before them
};

struct NetworkTimes {
  // One launch on a stream that has nothing to do takes so long on the device, between two events around it; and on
  // the host, until it has seen the outputs finished.
  Measurement latency, host_latency;
  // One launch takes so long among `samples` that follow each other at once: throughput is made of it.
  Measurement back_to_back;
  // Each step takes so long between events. Steps run one after the other, in order, so that each finds its code and
  // its inputs where the network would leave them; but none overlaps another. Each interval contains the time from one
  // launch in a stream to the next, which `empty` is without a launch in it.
  std::vector<Measurement> steps;
  Measurement empty;

  double sum_of_steps_us() const;  // medians
};

// Throws Error(usage) for options that are not positive.
NetworkTimes measure_network(const Device& device, const Stream& stream, const NetworkRun& run,
                             const NetworkMeasureOptions& options = {});

}  // namespace burin
