#include "compiler/launch_time.h"

#include <algorithm>
#include <cmath>

namespace burin {
namespace {

constexpr double kWideLoadGain = 2;  // of loads of 16 bytes, over the 4-byte copies of ArchSpec::l2_bytes_per_clock

double uncached(double bytes, const ArchSpec& arch) { return std::max(0.0, bytes - arch.l2_kept_bytes); }

}  // namespace

double clocks_us(double clocks, const ArchSpec& arch) {
  constexpr double kUsPerClockOfGhz = 1e-3;
  return clocks * kUsPerClockOfGhz / arch.clock_ghz;
}

double activation_bytes(const ConvShape& shape, int batch) {
  const std::int64_t residual = shape.epilogue.residual ? shape.conv_elements() : 0;
  return static_cast<double>(shape.input_elements() + shape.output_elements() + residual) * batch *
         static_cast<double>(sizeof(float));
}

double transfer_us(double bytes, const ArchSpec& arch) {
  const double far = uncached(bytes, arch);
  return clocks_us((bytes - far) / (kWideLoadGain * arch.l2_bytes_per_clock) + far / arch.device_bytes_per_clock, arch);
}

double launch_time_us(const LaunchWork& work, const ArchSpec& arch) {
  const double rounds = std::ceil(work.blocks / work.resident);
  // Later blocks find the code there, and those that run beside them cover their start.
  const double starts = work.waits + (rounds - 1) / work.resident;
  const double bytes = work.activation_bytes;
  const double far = clocks_us(uncached(bytes, arch) / arch.device_bytes_per_clock, arch);
  const double us = work.busy_us + (work.uncovered ? *work.uncovered * far : transfer_us(bytes, arch));
  return arch.launch_us + arch.fill_us * starts + std::max(us, far);
}

}  // namespace burin
