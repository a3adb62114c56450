// A kernel's source hash: of everything its code was made from.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/conv_layer.h"
#include "ir/kernel_plan.h"
#include "ir/operator_plan.h"

namespace burin {

// SHA-256 in hexadecimal of tool version, shape, weights, biases, plan and `edited` (a stage file that was fed back).
std::string source_hash(const ConvLayer& layer, const KernelPlan& plan, const std::string& edited);

// The same of an operator's kernel.
std::string source_hash(const OperatorPlan& plan, std::string_view weights);

// SHA-256 in hexadecimal of the parts, which cannot run into each other.
std::string content_hash(const std::vector<std::string_view>& parts);

}  // namespace burin
