// A model whose outputs are other tensors than the file says.
#pragma once

#include <onnx/onnx_pb.h>

#include <string>
#include <vector>

namespace burin {

// The outputs become these tensors, in their order; without any they stay. Throws Error(usage) for a name that no node
// makes and that is no input, or that is given twice.
void cut_outputs(::onnx::GraphProto& graph, const std::vector<std::string>& outputs, const std::string& path);

}  // namespace burin
