// What tuning found, as tables and JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "ir/package/manifest.h"

namespace burin {

const TuningCandidate& chosen(const TuningRecord& tuning);

// One row for each tuned kernel: the plan that was chosen and what it gains over the cost model's choice.
std::string tuning_summary(const Manifest& manifest);

// One row for each plan that was tried for a kernel, fastest first, below a line that says on what.
std::string tuning_table(const TuningRecord& tuning);

nlohmann::ordered_json to_json(const TuningRecord& tuning);

}  // namespace burin
