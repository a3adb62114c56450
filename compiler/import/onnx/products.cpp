#include "compiler/import/onnx/products.h"

#include <numeric>

namespace burin {
namespace {

// As the transposed tensor has them.
std::vector<float> ordered_values(const ConstantOperand& numbers, const std::vector<int>& order) {
  const std::vector<std::int64_t> made = ordered(numbers.shape, order);
  const std::size_t rank = made.size();
  std::vector<std::int64_t> pitch(rank, 1);
  for (std::size_t axis = rank; axis-- > 1;) pitch[axis - 1] = pitch[axis] * numbers.shape[axis];
  const std::vector<std::int64_t> steps = ordered(pitch, order);
  std::vector<float> values;
  values.reserve(numbers.values.size());
  for (std::int64_t i = 0; i < std::ssize(numbers.values); ++i) {
    std::int64_t rest = i, from = 0;
    for (std::size_t axis = rank; axis-- > 0;) {
      from += rest % made[axis] * steps[axis];
      rest /= made[axis];
    }
    values.push_back(numbers.values[static_cast<std::size_t>(from)]);
  }
  return values;
}

}  // namespace

const std::vector<std::int64_t>& shape_of(const GraphBuilder& graph, const Operand& operand) {
  const int* const tensor = std::get_if<int>(&operand);
  return tensor != nullptr ? graph.shape(*tensor) : std::get<ConstantOperand>(operand).shape;
}

Operand reshaped(const Node& node, GraphBuilder& graph, Operand operand, std::vector<std::int64_t> shape) {
  if (shape_of(graph, operand) == shape) return operand;
  if (auto* const constant = std::get_if<ConstantOperand>(&operand)) {
    constant->shape = std::move(shape);
    return operand;
  }
  return graph.emit_inner(node, "reshaped", Reshape{std::move(shape)}, {std::get<int>(operand)});
}

Operand transposed(const Node& node, GraphBuilder& graph, Operand operand, const std::vector<int>& order) {
  std::vector<int> as_it_is(order.size());
  std::iota(as_it_is.begin(), as_it_is.end(), 0);
  if (order == as_it_is) return operand;
  if (auto* const constant = std::get_if<ConstantOperand>(&operand)) {
    return ConstantOperand{ordered(constant->shape, order), ordered_values(*constant, order)};
  }
  return graph.emit_inner(node, "ordered", Transpose{order}, {std::get<int>(operand)});
}

Pending multiplied(Operand left, Operand right) {
  MatMul op;
  if (std::holds_alternative<int>(left) && std::holds_alternative<int>(right)) {
    return {std::move(op), {std::get<int>(left), std::get<int>(right)}};
  }
  op.constant_first = std::holds_alternative<ConstantOperand>(left);
  Operand& constant = op.constant_first ? left : right;
  Operand& tensor = op.constant_first ? right : left;
  op.constant = std::move(std::get<ConstantOperand>(constant));
  return {std::move(op), {std::get<int>(tensor)}};
}

}  // namespace burin
