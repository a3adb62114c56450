// Why a step of a network has its kernel, for tables and for JSON.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "ir/package/network_record.h"

namespace burin {

std::vector<KernelOption> options_of(const NetworkProgram& program, std::size_t step);

// Those that were not chosen, behind the one that was: " (conv_baked 6.5 us)"; empty where there are none.
std::string others_text(const std::vector<KernelOption>& options);

nlohmann::ordered_json options_json(const std::vector<KernelOption>& options);

}  // namespace burin
