#include "compiler/import/onnx/inline_branch.h"

#include <memory>
#include <unordered_set>

#include "compiler/import/onnx/convert_node.h"
#include "compiler/import/onnx/node_order.h"
#include "ir/printable.h"

namespace burin {
namespace {

using Renames = std::unordered_map<std::string, std::string>;

bool is_taken(const Node& node, GraphBuilder& graph) {
  if (graph.is_activation(node, 0)) {
    node.unsupported(
        "its condition {} is computed from the network's input; burin takes one branch when it reads the "
        "model",
        in_quotes(node.input(0)));
  }
  const SharedConstant condition = graph.numbers(node, 0);
  if (condition->type != StoredType::boolean || condition->elements() != 1) {
    node.bad_input("its condition {} must be one truth value", in_quotes(node.input(0)));
  }
  return condition->integers().values[0] != 0;
}

// Names that the branch gives to values of its own.
std::vector<std::string> made_names(const ::onnx::GraphProto& branch) {
  std::vector<std::string> names;
  for (const auto& tensor : branch.initializer()) names.push_back(tensor.name());
  for (const auto& tensor : branch.sparse_initializer()) names.push_back(tensor.values().name());
  for (const auto& node : branch.node()) names.insert(names.end(), node.output().begin(), node.output().end());
  return names;
}

void rename(::onnx::GraphProto& branch, const Renames& renames) {
  const auto change = [&](std::string& name) {
    if (const auto found = renames.find(name); found != renames.end()) name = found->second;
  };
  for (auto& tensor : *branch.mutable_initializer()) change(*tensor.mutable_name());
  for (auto& tensor : *branch.mutable_sparse_initializer()) change(*tensor.mutable_values()->mutable_name());
  for (auto& node : *branch.mutable_node()) {
    for (auto& input : *node.mutable_input()) change(input);
    for (auto& output : *node.mutable_output()) change(output);
    for (auto& attribute : *node.mutable_attribute()) {
      if (attribute.has_g()) rename(*attribute.mutable_g(), renames);
      for (auto& inner : *attribute.mutable_graphs()) rename(inner, renames);
    }
  }
  for (auto& output : *branch.mutable_output()) change(*output.mutable_name());
}

}  // namespace

void inline_branch(const Node& node, GraphBuilder& graph) {
  const auto* const then_branch = node.attributes().graph("then_branch");
  const auto* const else_branch = node.attributes().graph("else_branch");
  const ::onnx::GraphProto* const taken = is_taken(node, graph) ? then_branch : else_branch;
  if (taken == nullptr) node.bad_input("lacks the branch that its condition takes");
  if (taken->input_size() != 0 || taken->output_size() != node.outputs()) {
    node.bad_input("has {} outputs; its branch takes {} inputs and has {} outputs", node.outputs(), taken->input_size(),
                   taken->output_size());
  }
  auto branch = std::make_unique<::onnx::GraphProto>(*taken);
  Renames renames;
  for (const std::string& name : made_names(*branch)) {
    if (!name.empty() && graph.is_defined(name)) renames.emplace(name, graph.unused_value_name(name));
  }
  if (!renames.empty()) rename(*branch, renames);
  const ::onnx::GraphProto& body = graph.add_graph(node.at(), std::move(branch));
  std::unordered_set<std::string> given;
  for (const auto& inner : body.node()) {
    for (const std::string& name : names_read(inner)) {
      if (graph.is_defined(name)) given.insert(name);
    }
  }
  for (const auto& output : body.output()) {
    if (graph.is_defined(output.name())) given.insert(output.name());
  }
  for (const std::string& name : made_names(body)) {
    if (graph.is_defined(name)) given.insert(name);  // its initializers
  }
  for (const auto* const inner : order_nodes(body, given, node.at()).nodes) {
    convert_node(*inner, graph.unique_name(wanted_name(*inner)), node.opset(), graph);
  }
  for (int i = 0; i < node.outputs(); ++i) {
    if (!node.output(i).empty()) graph.pass_on(node, body.output(i).name(), node.output(i));
  }
}

}  // namespace burin
