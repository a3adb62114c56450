// Operators that a user gives.
#include "compiler/import/onnx/converters.h"
#include "compiler/import/onnx/operands.h"
#include "ir/printable.h"

namespace burin {

void convert_users_own(const Node& node, const std::string& name, GraphBuilder& graph) {
  if (node.inputs() < 1 || node.inputs() > kMaxFunctionInputs) {
    node.unsupported(
        "reads {} tensors; an operator of --operator computes each value from those at its place in one or {}",
        node.inputs(), kMaxFunctionInputs);
  }
  for (int i = 0; i < node.inputs(); ++i) {
    if (!node.has_input(i)) node.bad_input("lacks input {}", i + 1);
  }
  const SharedFunction function = graph.options().operators->make(name, node.inputs(), node.attributes().all_numbers());
  if (node.inputs() == 1) {
    return graph.emit(node, Elementwise{.function = ElementFunction::user, .user = function},
                      {graph.activation(node, 0)});
  }
  Pending pending = of_both(node, graph, Combine{Combination::user});
  std::get<Combine>(pending.kind).user = function;
  emit(node, graph, std::move(pending));
}

}  // namespace burin
