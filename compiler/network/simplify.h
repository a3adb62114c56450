// A graph from an importer, made ready for the compilation of its layers.
#pragma once

#include <functional>
#include <string>

#include "compiler/network/passes.h"

namespace burin {

// Called after each pass; `changes` 0 means that it left the network as it was. A dump of print(network) belongs here.
using PassObserver = std::function<void(const std::string& pass, const Network& network, int changes)>;

// Runs the passes of passes.h in their order, and again until none finds anything more to do; of those later rounds
// the observer hears only what changed something. Formats are assigned at the end. Without choices every pool goes into
// a convolution that can, and all tensors are float32 in nchw.
// The network must be one that verify() finds no fault with, and the result is one. A network without a graph is
// returned as it is.
Network simplify(Network network, const PassObserver& observe = {}, const GraphChoices& choices = {});

}  // namespace burin
