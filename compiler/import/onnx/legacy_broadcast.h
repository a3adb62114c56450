// How operators of two tensors aligned their axes before opset 7, which repeats as NumPy does.
#pragma once

#include "compiler/import/onnx/node.h"

namespace burin {

// The shape of the second operand as NumPy would need it, batch included. Reads the attributes 'broadcast' and 'axis'
// of opset 6; from opset 7 on the shape stays what it is.
std::vector<std::int64_t> aligned_shape(const Node& node, const std::vector<std::int64_t>& first,
                                        std::vector<std::int64_t> second);

}  // namespace burin
