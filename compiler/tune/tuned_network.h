// A package with what was measured to be the fastest: of each kernel by itself, and then in the network.
#pragma once

#include <functional>

#include "compiler/compile.h"
#include "compiler/tune/network_timer.h"
#include "compiler/tune/tune.h"

namespace burin {

// Kernels that are the fastest among launches of their own kind need not be so in a network, where others run before
// them. So a network has options.tuned, or the models' choice where that is faster as a whole, and then one step after
// the other launches its rivals: what makes the whole network faster stays. Each batch size gets what took the least
// time, and a note says the times. Layers by themselves have what was measured of them, and so has a network whose
// kernels are chosen within a limit of memory, or that cannot be timed. Steps are exchanged until the budget nears its
// end. `progress` may be empty.
CompileResult compile_tuned(const Network& network, CompileOptions options, const TuneOptions& tune_options,
                            const std::function<void(const CompileProgress&)>& progress, const NetworkTimer& time);

}  // namespace burin
