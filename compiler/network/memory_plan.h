// From a graph to a NetworkPlan: where every tensor lies, which steps there are, and what each waits for.
#pragma once

#include "compiler/network/layouts.h"
#include "compiler/network/placement.h"
#include "ir/network_plan.h"

namespace burin {

struct MemoryPlanOptions {
  PlacementOptions placement;
  // An element-wise step writes over its input where nothing else reads that any more. Only for kernels that say they
  // bear it: loads that are "read-only for the whole launch" (templates/device.h) must not find stores of that launch.
  bool in_place = false;
  // Steps that do not need each other may run at the same time. Without it each waits for the one before: less memory.
  bool parallel = true;
  // nchw everywhere unless said otherwise.
  LayoutsOf layouts_of = [](const Operator&) { return LayoutChoice{}; };
};

// One step for each operator but Concat, Reshape and Identity, which move nothing (placement.h); copies where one must
// be made: for inputs of a Concat that cannot lie in its output, and for outputs of the network whose tensor is an
// input or another output as well. Steps wait for those that write what they read, and for nothing else: memory is
// shared only where the order of the steps allows it. The steps, their places too, are the same for every batch. The
// network must have a graph that verify() finds no fault with; the result has none either. Throws Error(unsupported)
// for a network beyond the limits of a plan.
NetworkPlan plan_network(const Network& network, int batch, const MemoryPlanOptions& options = {});

}  // namespace burin
