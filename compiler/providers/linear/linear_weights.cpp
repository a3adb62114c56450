#include "compiler/providers/linear/linear_weights.h"

#include <cmath>

#include "compiler/providers/template_provider.h"
#include "ir/error.h"

namespace burin {

Linear stored_weights(const Linear& op, const Task& task) {
  Linear stored = op;
  if (task.linear_storage == ElementType::f32) return stored;
  for (float& weight : stored.weights) {
    const float value = rounded(task.linear_storage, weight);
    if (std::isinf(value)) {
      fail(ErrorKind::unsupported,
           "linear layer '{}': its weight {} is too large for FP16, whose largest number is {}: compile it with "
           "--linear-storage fp32",
           task.name, weight, largest_of(task.linear_storage));
    }
    weight = value;
  }
  return stored;
}

}  // namespace burin
