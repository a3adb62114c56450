// How long a launch takes within a network's graph, from what a provider's model says of its work. Launches, the
// waiting of blocks at their start, and memory are counted here, for all providers alike.
//
// test/models/ holds what was measured, and says how far all this is off.
#pragma once

#include <optional>

#include "ir/arch.h"
#include "ir/conv_layer.h"

namespace burin {

struct LaunchWork {
  double busy_us = 0;               // of the busiest multiprocessor, while its blocks have what they need
  double blocks = 1, resident = 1;  // of that multiprocessor: all that it runs, and how many at a time
  int waits = 1;                    // how often a block waits for memory before it can begin its work
  double activation_bytes = 0;      // read and written, once each
  // The part of the way to memory that other work does not cover; the way to the L2 cache is then in busy_us. A kernel
  // that moves its activations and does little else has none.
  std::optional<double> uncovered = 0.6;
};

// A convolution waits for its code or its first weights, and then for its input.
inline constexpr int kConvolutionWaits = 2;

// What a convolution reads and writes, its residual too.
double activation_bytes(const ConvShape& shape, int batch);

double launch_time_us(const LaunchWork& work, const ArchSpec& arch);

// The time that so many clocks of a multiprocessor take.
double clocks_us(double clocks, const ArchSpec& arch);

}  // namespace burin
