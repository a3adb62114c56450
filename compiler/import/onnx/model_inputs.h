// The inputs of a model: which of them the network has, and how large one image of each is.
#pragma once

#include <string>
#include <unordered_set>

#include "compiler/import/onnx/graph_builder.h"

namespace burin {

// Adds those inputs that a node of `read` names to the network, with the sizes of the file or of --input-shape.
// Throws Error(bad_input) for sizes that cannot be, Error(usage) for sizes that nobody gives, and Error(unsupported)
// for inputs that are no numbers.
void add_inputs(const ::onnx::GraphProto& model, const std::unordered_set<std::string>& read, GraphBuilder& graph);

}  // namespace burin
