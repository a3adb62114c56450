// A GPU that computes what the reference computes, and takes as long as a test says.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "compiler/reference.h"
#include "compiler/tune/measurer.h"
#include "compiler/tune/tune.h"
#include "ir/derive_form.h"
#include "ir/error.h"

namespace burin_test {

class FakeMeasurer : public burin::Measurer {
 public:
  explicit FakeMeasurer(const burin::Network& network) : network_(network) {}

  std::function<double(const burin::BakedPlan&)> cold_us = [](const burin::BakedPlan& plan) {
    return plan.predicted_us;
  };
  std::function<bool(const burin::BakedPlan&)> is_wrong = [](const burin::BakedPlan&) { return false; };
  std::function<bool(const burin::BakedPlan&)> faults = [](const burin::BakedPlan&) { return false; };
  bool a_fault_ends_all = false;
  int runs = 0, timings = 0;

  burin::TuningDevice device() const override { return {"Fake H200", "sm_90", 13000, 8}; }

  void run(const burin::Package& package, int batch, std::span<const float> input, std::span<const float> residual,
           std::span<float> output) override {
    ++runs;
    const burin::BakedPlan plan = plan_of(package);
    if (faults(plan)) {
      faulted_ = true;
      burin::fail(burin::ErrorKind::device, "cuLaunchKernel: the fake faults");
    }
    const std::vector<double> right = burin::reference_convolution(layer_of(package), batch, input, residual);
    for (std::size_t i = 0; i < output.size(); ++i) output[i] = static_cast<float>(right[i]);
    if (is_wrong(plan)) output[output.size() / 2] += 1;
  }

  burin::LaunchTimes time(const burin::Package& package, int batch) override {
    ++timings;
    const double cold = cold_us(plan_of(package));
    return {cold, cold / 2, 50};
  }

  bool usable() override { return !(faulted_ && a_fault_ends_all); }

 private:
  static burin::BakedPlan plan_of(const burin::Package& package) {
    return burin::parse_baked_plan(package.manifest.kernels.at(0).plan);
  }
  const burin::ConvLayer& layer_of(const burin::Package& package) const {
    for (const burin::ConvLayer& layer : network_.layers) {
      if (layer.name == package.manifest.kernels.at(0).op) return layer;
    }
    throw std::logic_error("a kernel of no layer");
  }

  const burin::Network& network_;
  bool faulted_ = false;
};

// A package without code: enough for the fake.
inline burin::Package fake_compile(const burin::ConvLayer& layer, const burin::SparsePattern& pattern,
                                   const burin::BakedPlan& plan) {
  burin::Package package;
  burin::Kernel& kernel = package.manifest.kernels.emplace_back();
  kernel.symbol = burin::kernel_symbol(layer.name, plan);
  kernel.op = layer.name;
  kernel.kind = "convolution";
  kernel.provider = burin::kBakedProvider;
  kernel.precision = burin::to_string(plan.precision);
  kernel.layer = burin::KernelLayer{.shape = layer.shape};
  kernel.layer->nonzeros = static_cast<std::int64_t>(pattern.taps.size());
  kernel.planned_batch = plan.batch;
  kernel.predicted_us = plan.predicted_us;
  kernel.plan = burin::print(plan);
  burin::derive_form(kernel);
  return package;
}

// The plan that was chosen.
inline burin::BakedPlan plan_of(const burin::TunedKernel& tuned) {
  return burin::parse_baked_plan(tuned.candidate.plan);
}

}  // namespace burin_test
