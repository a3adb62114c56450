#include "compiler/launch_time.h"

#include <algorithm>
#include <cmath>

namespace burin {

double clocks_us(double clocks, const ArchSpec& arch) {
  constexpr double kUsPerClockOfGhz = 1e-3;
  return clocks * kUsPerClockOfGhz / arch.clock_ghz;
}

double activation_bytes(const ConvShape& shape, int batch) {
  const std::int64_t residual = shape.epilogue.residual ? shape.conv_elements() : 0;
  return static_cast<double>(shape.input_elements() + shape.output_elements() + residual) * batch *
         static_cast<double>(sizeof(float));
}

double launch_time_us(const LaunchWork& work, const ArchSpec& arch) {
  constexpr double kWideLoadGain = 2;  // of loads of 16 bytes, over the 4-byte copies of ArchSpec::l2_bytes_per_clock
  const double rounds = std::ceil(work.blocks / work.resident);
  // Later blocks find the code there, and those that run beside them cover their start.
  const double starts = work.waits + (rounds - 1) / work.resident;
  const double bytes = work.activation_bytes;
  // The rest is in the L2 cache, where the kernel before has left it.
  const double uncached = std::max(0.0, bytes - arch.l2_kept_bytes),
               far_clocks = uncached / arch.device_bytes_per_clock;
  const double near_clocks = (bytes - uncached) / (kWideLoadGain * arch.l2_bytes_per_clock);
  const double far = clocks_us(far_clocks, arch);
  const double us = work.busy_us + (work.uncovered ? *work.uncovered * far : clocks_us(near_clocks + far_clocks, arch));
  return arch.launch_us + arch.fill_us * starts + std::max(us, far);
}

}  // namespace burin
