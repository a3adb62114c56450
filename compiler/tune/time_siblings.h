// Whether convolutions with the same input are better one kernel, by what whole networks take.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "compiler/options.h"
#include "compiler/tune/network_timer.h"
#include "ir/network.h"

namespace burin {

struct TimedSiblings {
  std::set<int> apart;             // batch sizes for which they are better left apart
  std::vector<std::string> notes;  // one for each batch size that was timed
};

// For each batch size for which the models join some, the network is compiled with them and without, with the kernels
// that the models choose, and both are timed in turns. `network`: as it was imported. Batch sizes of one graph for a
// range, networks of layers by themselves, and those that cannot be timed stay as the models say.
TimedSiblings time_siblings(const Network& network, const CompileOptions& options,
                            const std::function<void(const CompileProgress&)>& progress, const NetworkTimer& time);

}  // namespace burin
