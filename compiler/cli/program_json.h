// A Program for machines, and why its steps have their kernels.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "ir/program.h"

namespace burin {

nlohmann::ordered_json to_json(const Program& program);
nlohmann::ordered_json options_json(const std::vector<KernelOption>& options);

// For tables: those that were not chosen, behind the one that was: " (conv_baked 6.5 us)"; empty where there are none.
std::string others_text(const std::vector<KernelOption>& options);

}  // namespace burin
