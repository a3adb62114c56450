// A kernel's source hash: of everything its code was made from.
#pragma once

#include <string>

#include "ir/conv_layer.h"
#include "ir/kernel_plan.h"

namespace burin {

// SHA-256 in hexadecimal of tool version, shape, weights, biases, plan and `edited` (a stage file that was fed back).
std::string source_hash(const ConvLayer& layer, const KernelPlan& plan, const std::string& edited);

}  // namespace burin
