// What estimates decide of a whole graph, by what whole networks take: which convolutions are one kernel, and in which
// formats tensors lie.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "compiler/options.h"
#include "compiler/tune/network_timer.h"
#include "compiler/tune/time_budget.h"
#include "ir/network.h"

namespace burin {

struct TimedGraphs {
  std::map<int, Joins> joins;         // of batch sizes for which some are better left apart
  std::map<int, FormatRule> formats;  // of batch sizes for which another rule than usual_rule() is faster
  std::vector<std::string> notes;     // one for each comparison
};

// The rules whose formats are worth timing where the candidates of these providers alone are measured; where none is
// named, those of all. Formats that calls read best are left out where no such call is measured.
std::vector<FormatRule> rules_for(const std::vector<std::string>& providers);

// For each batch size, and each kind of Joins of which the models join some, the network is compiled with them and
// without, with the kernels that the models choose, and both are timed in turns; and likewise in the formats of each of
// the rules, where they are others; without rules formats are fixed. `network`: as it was imported. Batch sizes of one
// graph for a range, networks of layers by themselves, and those that cannot be timed stay as the models say, and so
// does what a quarter of the budget did not suffice for, which a note says.
TimedGraphs time_graphs(const Network& network, const CompileOptions& options, const std::vector<FormatRule>& rules,
                        const std::function<void(const CompileProgress&)>& progress, const NetworkTimer& time,
                        const TimeBudget& budget = {});

struct TimedFormats {
  // CompileOptions::formats: of batch sizes for which they are faster than those that the options lead to.
  std::map<int, std::map<std::string, OperatorFormats>> formats;
  std::vector<std::string> notes;  // one for each comparison
};

// For each batch size whose convolutions were measured in several formats (CompileOptions::tuned), the network in the
// formats that are the fastest by that (formats_by_measurement()) and in those that it has are timed in turns, where
// they are others. The same networks as in time_graphs() stay as they are, and those for which the budget is up.
TimedFormats time_measured_formats(const Network& network, const CompileOptions& options,
                                   const std::function<void(const CompileProgress&)>& progress,
                                   const NetworkTimer& time, const TimeBudget& budget = {});

}  // namespace burin
