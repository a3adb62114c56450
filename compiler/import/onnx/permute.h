// Constants with their axes in another order.
#pragma once

#include "compiler/import/onnx/stored_tensor.h"

namespace burin {

// Axis i of the result is axis order[i] of the tensor; `order` names each axis once.
StoredTensor permuted(const StoredTensor& tensor, const std::vector<std::int64_t>& order);

}  // namespace burin
