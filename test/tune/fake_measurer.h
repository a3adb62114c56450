// A GPU that computes what the reference computes, and takes as long as a test says.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "compiler/network/reference_network.h"
#include "compiler/program_tasks.h"
#include "compiler/reference.h"
#include "compiler/tune/measurer.h"
#include "compiler/tune/tune.h"
#include "ir/derive_form.h"
#include "ir/error.h"

namespace burin_test {

class FakeMeasurer : public burin::Measurer {
 public:
  explicit FakeMeasurer(const burin::Network& network) : network_(network) {}

  std::function<double(const burin::BakedPlan&)> baked_us = [](const burin::BakedPlan& plan) {
    return plan.predicted_us;
  };
  std::function<double(const burin::Kernel&)> others_us = [](const burin::Kernel& kernel) {
    return kernel.predicted_us;
  };  // of kernels that are not baked
  std::function<bool(const burin::BakedPlan&)> is_wrong = [](const burin::BakedPlan&) { return false; };
  std::function<bool(const burin::BakedPlan&)> faults = [](const burin::BakedPlan&) { return false; };
  std::function<bool(const burin::Kernel&)> loses_infinities = [](const burin::Kernel&) { return false; };
  bool a_fault_ends_all = false;
  std::vector<burin::LibraryVersion> libraries;  // that candidates may call
  int runs = 0, timings = 0;
  std::vector<std::size_t> turns;  // how many kernels took turns, each time that several did
  double drift = 1;                // of the clock: what takes turns then takes so much longer
  double last_zeros = 0;           // the share of the input that was timed last

  burin::TuningDevice device() const override { return {"Fake H200", "sm_90", 13000, 8, libraries}; }

  void run(const burin::Package& package, int batch, std::span<const float> input, std::span<const float> residual,
           std::span<float> output) override {
    ++runs;
    const bool baked = is_baked(package);
    if (baked && faults(plan_of(package))) {
      faulted_ = true;
      burin::fail(burin::ErrorKind::device, "cuLaunchKernel: the fake faults");
    }
    const std::vector<double> right = package.manifest.kernels.at(0).layer
                                          ? burin::reference_convolution(layer_of(package), batch, input, residual)
                                          : run_operator(package.manifest.kernels.at(0).op, batch, input);
    for (std::size_t i = 0; i < output.size(); ++i) output[i] = static_cast<float>(right[i]);
    if (loses_infinities(package.manifest.kernels.at(0))) {
      for (float& value : output) value = std::isinf(value) ? 0 : value;
    }
    if (baked && is_wrong(plan_of(package))) output[output.size() / 2] += 1;
  }

  std::vector<burin::Timing> time_in_turns(std::span<const burin::Package* const> packages, int,
                                           std::span<const float> input) override {
    last_zeros = std::ranges::count(input, 0.0F) / std::max<double>(1, static_cast<double>(input.size()));
    std::vector<burin::Timing> timed;
    const bool alone = packages.size() == 1;
    if (!alone) turns.push_back(packages.size());
    for (const burin::Package* package : packages) {
      if (alone) ++timings;
      const double us = is_baked(*package) ? baked_us(plan_of(*package)) : others_us(package->manifest.kernels.at(0));
      timed.push_back({.time = {alone ? us : us * drift, 50}, .fault = {}});
    }
    return timed;
  }

  bool usable() override { return !(faulted_ && a_fault_ends_all); }

 private:
  static bool is_baked(const burin::Package& package) {
    return package.manifest.kernels.at(0).provider == burin::kBakedProvider;
  }
  static burin::BakedPlan plan_of(const burin::Package& package) {
    return burin::parse_baked_plan(package.manifest.kernels.at(0).plan);
  }
  const burin::ConvLayer& layer_of(const burin::Package& package) const {
    for (const burin::ConvLayer& layer : network_.layers) {
      if (layer.name == package.manifest.kernels.at(0).op) return layer;
    }
    throw std::logic_error("a kernel of no layer");
  }

  std::vector<double> run_operator(const std::string& name, int batch, std::span<const float> input) const {
    const auto op = std::ranges::find(network_.operators, name, &burin::Operator::name);
    if (op == network_.operators.end()) throw std::logic_error("a kernel of no operator");
    const std::vector<double> values(input.begin(), input.end());
    return burin::run_reference_operator(network_, *op, batch, {values});
  }

  const burin::Network& network_;
  bool faulted_ = false;
};

// A package without code: enough for the fake.
inline burin::Package fake_compile(const burin::Task& task, const burin::Candidate& candidate) {
  burin::Package package;
  burin::Kernel& kernel = package.manifest.kernels.emplace_back();
  kernel.symbol = candidate.symbol;
  kernel.op = task.name;
  kernel.kind = task.kind;
  kernel.provider = candidate.provider;
  kernel.precision = burin::to_string(task.precision);
  if (task.layer != nullptr) {
    kernel.layer = burin::KernelLayer{.shape = task.layer->shape};
    kernel.layer->nonzeros = burin::nonzeros_of(task);
  }
  if (const burin::Linear* linear = task.get<burin::Linear>()) {
    kernel.linear = burin::WeightMatrix{linear->out_features, linear->in_features, burin::nonzeros_of(task)};
    if (burin::library_of(candidate.provider)) kernel.called = burin::called_linear(task);
  }
  kernel.planned_batch = task.batch;
  kernel.predicted_us = candidate.estimate.us;
  kernel.plan = candidate.plan;
  burin::derive_form(kernel);
  return package;
}

inline burin::CompileOptions baked_alone() {
  burin::CompileOptions options;
  options.kernels.all = burin::kBakedProvider;
  return options;
}

// The plan that was chosen.
inline burin::BakedPlan plan_of(const burin::TunedKernel& tuned) {
  return burin::parse_baked_plan(tuned.candidate.plan);
}

}  // namespace burin_test
