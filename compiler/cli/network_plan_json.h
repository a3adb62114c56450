// A NetworkPlan for machines.
#pragma once

#include <nlohmann/json.hpp>

#include "ir/network_plan.h"

namespace burin {

nlohmann::ordered_json to_json(const NetworkPlan& plan);

}  // namespace burin
