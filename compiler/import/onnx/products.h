// Products of matrices of which at most one is a constant: of MatMul and Einsum.
#pragma once

#include <variant>
#include <vector>

#include "compiler/import/onnx/graph_builder.h"
#include "compiler/import/onnx/node.h"
#include "compiler/import/onnx/operands.h"

namespace burin {

// A tensor, or numbers of the model.
using Operand = std::variant<int, ConstantOperand>;

const std::vector<std::int64_t>& shape_of(const GraphBuilder& graph, const Operand& operand);
// With another shape, or with its axes in another order: of a tensor by an operator, of a constant at once.
Operand reshaped(const Node& node, GraphBuilder& graph, Operand operand, std::vector<std::int64_t> shape);
Operand transposed(const Node& node, GraphBuilder& graph, Operand operand, const std::vector<int>& order);

// The operands are as MatMul has them, and at least one is a tensor.
Pending multiplied(Operand left, Operand right);

}  // namespace burin
