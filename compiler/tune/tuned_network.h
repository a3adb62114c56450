// A package with what was measured to be the fastest, unless the models' choice is faster in the network.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "compiler/compile.h"

namespace burin {

// What a launch of each package's network takes for a batch size, in microseconds; the networks take turns.
using NetworkTimer = std::function<std::vector<double>(std::span<const Package* const> packages, int batch)>;

// Kernels that are the fastest among launches of their own kind need not be so in a network, where others run before
// them. So a network is timed with options.tuned and with the models' choice, and for each batch size the faster is
// packed; a note says both times. Layers by themselves have what was measured, and so has a network that cannot be
// timed or compiled otherwise. `progress` may be empty.
CompileResult compile_tuned(const Network& network, CompileOptions options,
                            const std::function<void(const CompileProgress&)>& progress, const NetworkTimer& time);

}  // namespace burin
