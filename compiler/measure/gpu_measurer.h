// Tuning's Measurer over the runtime: what `verify` and `bench` do, for one kernel at a time.
#pragma once

#include <string>
#include <vector>

#include "compiler/tune/measurer.h"
#include "runtime/burin/runtime.hpp"

namespace burin {

class GpuMeasurer : public Measurer {
 public:
  // Takes the first GPU whose architecture is one of `archs`. Throws Error(device) where there is none.
  explicit GpuMeasurer(const std::vector<std::string>& archs);

  TuningDevice device() const override;
  void run(const Package& package, int batch, std::span<const float> input, std::span<const float> residual,
           std::span<float> output) override;
  LaunchTime time(const Package& package, int batch) override;
  bool usable() override;

 private:
  Device device_;
};

}  // namespace burin
