// From a graph to a Program without kernels: where every tensor lies, which steps there are, and what each waits for.
#pragma once

#include "ir/network.h"
#include "ir/program.h"

namespace burin {

// One step for each operator but Concat, ChannelView, Reshape and Identity, which move nothing; copies where one must
// be made: for inputs of a Concat that cannot lie in its output, and for outputs of the network whose tensor is an
// input, another output or a part of a larger tensor as well. Steps wait for those that write what they read, and for
// nothing else: memory is shared only where the order of the steps allows it. The steps, their places too, are the same
// for every batch. The network must be one that verify() finds no fault with; the result has none either. `name`: the
// program's. Throws Error(unsupported) for a network beyond the limits of a program.
Program plan_network(const Network& network, const std::string& name, int batch);

}  // namespace burin
