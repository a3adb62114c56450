// The operators on which the cost models are fitted and judged, and what was measured of them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "test/providers/provider_cases.h"

namespace burin_test {

struct ModelCase {
  OperatorCase edge;
  bool fitted = false;  // constants of the models were chosen by its times; else it tells how far they carry
};

std::vector<ModelCase> model_cases();

// A line of times.tsv: what burin_model_times measured of one kernel.
struct MeasuredTime {
  std::string op;  // the name of a case
  int batch = 1;
  std::string provider;
  std::string plan;  // Provider::brief()
  double us = 0;
};

inline constexpr std::string_view kTimesHeader = "case\tbatch\tprovider\tplan\tus";

std::string print(const MeasuredTime& time);
// The lines behind the header; lines that begin with # are skipped. Throws Error(bad_input).
std::vector<MeasuredTime> parse_times(std::string_view text);

}  // namespace burin_test
