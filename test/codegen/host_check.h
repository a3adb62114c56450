// Generated code against the float64 reference, on the host executor.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/baked_plan.h"
#include "ir/conv_layer.h"

namespace burin_test {

// Specialises the layer for `plan` and runs it once for each batch size, the output poisoned with NaN. Empty when every
// output is within its tolerance; else what went wrong, with the plan. Plans with activity maps run without a map, with
// true ones of inputs with dead channels, and with one that lies: what it calls dead must not be looked at.
std::string check_on_host(const burin::ConvLayer& layer, const burin::BakedPlan& plan, const std::vector<int>& batches,
                          std::uint64_t seed = 1);

// The same, but with the code of `layer` held against the reference of another: the test of the test.
std::string check_against(const burin::ConvLayer& reference, const burin::ConvLayer& layer,
                          const burin::BakedPlan& plan, const std::vector<int>& batches, std::uint64_t seed = 1);

// The same as check_on_host() with the planner's plan for `planned_batch` on `arch`.
std::string check_planned_on_host(const burin::ConvLayer& layer, int planned_batch, const std::vector<int>& batches,
                                  const std::string& arch = "sm_90", std::uint64_t seed = 1,
                                  burin::Precision precision = burin::Precision::fp32);

// The same, of a plan with activity maps.
std::string check_skipping_on_host(const burin::ConvLayer& layer, int planned_batch, const std::vector<int>& batches,
                                   burin::Precision precision = burin::Precision::fp32,
                                   burin::TensorLayout layout = burin::TensorLayout::nchw);

}  // namespace burin_test
