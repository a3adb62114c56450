// What the providers of fully connected layers share.
#pragma once

#include "compiler/task.h"
#include "ir/operators.h"

namespace burin {

// The layer with its weights rounded to what the task stores them as: small ones may become zeros. Throws
// Error(unsupported) for a weight that is too large.
Linear stored_weights(const Linear& op, const Task& task);

}  // namespace burin
