// burin inspect of a package that holds a whole network: its programs, step by step.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "ir/package/package.h"

namespace burin {

// Inputs and outputs, then for each program its steps with the kernels that they launch, and its memory. What the
// assembler said is of the cubin for `arch`, or of the first. With `memory`, also where each tensor lies.
std::string print_network(const Manifest& manifest, const std::optional<std::string>& arch, bool memory);
nlohmann::ordered_json network_json(const Manifest& manifest, const std::optional<std::string>& arch);

}  // namespace burin
