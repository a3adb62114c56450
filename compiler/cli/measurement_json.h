// A measurement as bench's JSON has it.
#pragma once

#include <nlohmann/json.hpp>

#include "runtime/bench/measure.h"

namespace burin {

inline nlohmann::ordered_json measurement_json(const Measurement& m) {
  return {{"median_us", m.median_us},
          {"p10_us", m.p10_us},
          {"p90_us", m.p90_us},
          {"p99_us", m.p99_us},
          {"min_us", m.min_us},
          {"launches_per_graph", m.launches_per_graph},
          {"samples", m.samples_us.size()}};
}

}  // namespace burin
