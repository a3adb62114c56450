#include "compiler/import/onnx/legacy_broadcast.h"

#include "compiler/import/weights_tensor.h"

namespace burin {

std::vector<std::int64_t> aligned_shape(const Node& node, const std::vector<std::int64_t>& first,
                                        std::vector<std::int64_t> second) {
  constexpr int kNumpyOpset = 7;
  // Operators of lists had no such attributes; tensors of one shape were all that they took.
  if (node.opset() >= kNumpyOpset) return second;
  // A list of slopes is that of the channels.
  if (node.op() == "PRelu" && second.size() == 1) {
    if (first.size() > 2) second.resize(first.size() - 1, 1);
    return second;
  }
  const bool list = node.op() == "Sum" || node.op() == "Max" || node.op() == "Min";
  if (list || !node.attributes().boolean("broadcast", false)) {
    if (first != second) {
      node.bad_input("its operands have the shapes {} and {}; in opset {} they must be the same{}", extents_text(first),
                     extents_text(second), node.opset(), list ? "" : " without the attribute 'broadcast'");
    }
    return second;
  }
  const auto behind = static_cast<std::int64_t>(first.size()) - static_cast<std::int64_t>(second.size());
  const std::int64_t given = node.attributes().integer("axis", behind);
  const std::int64_t axis = given < 0 ? given + static_cast<std::int64_t>(first.size()) : given;
  if (axis < 0 || axis > behind) {
    node.bad_input("attribute 'axis' is {}; its operands have the shapes {} and {}", given, extents_text(first),
                   extents_text(second));
  }
  second.resize(second.size() + static_cast<std::size_t>(behind - axis), 1);
  return second;
}

}  // namespace burin
