// If: the branch that is taken, where the condition follows from constants and shapes.
#pragma once

#include "compiler/import/onnx/graph_builder.h"

namespace burin {

// The nodes of the branch become part of the graph, and its outputs those of the node. Values of the branch whose names
// are taken are renamed. Throws Error(unsupported) for a condition that is computed from the network's input.
void inline_branch(const Node& node, GraphBuilder& graph);

}  // namespace burin
