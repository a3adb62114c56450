#include "compiler/import/onnx/model_reader.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <unordered_set>

#include "compiler/import/faults.h"
#include "compiler/import/names.h"
#include "compiler/import/onnx/convert_node.h"
#include "compiler/import/onnx/cut_outputs.h"
#include "compiler/import/onnx/model_file.h"
#include "compiler/import/onnx/model_inputs.h"
#include "ir/limits.h"

namespace burin {
namespace {

using NameSet = std::unordered_set<std::string>;

NameSet constant_names(const ::onnx::GraphProto& graph) {
  NameSet names;
  for (const auto& tensor : graph.initializer()) names.insert(tensor.name());
  for (const auto& tensor : graph.sparse_initializer()) names.insert(tensor.values().name());
  return names;
}

NameSet given_names(const ::onnx::GraphProto& graph) {
  NameSet names = constant_names(graph);
  for (const auto& input : graph.input()) names.insert(input.name());
  return names;
}

NameSet names_that_are_read(const NodeOrder& order, const ::onnx::GraphProto& graph) {
  NameSet names;
  for (const auto* const node : order.nodes) {
    for (std::string& name : names_read(*node)) names.insert(std::move(name));
  }
  for (const auto& output : graph.output()) names.insert(output.name());
  return names;
}

}  // namespace

ModelReader::ModelReader(std::string_view bytes, const std::string& path, const ImportOptions& options)
    : path_(path), options_(options), model_(parse_model(bytes, path)), opset_(opset_of(*model_, path)) {
  cut_outputs(*model_->mutable_graph(), options.outputs, path);
  const ::onnx::GraphProto& proto = model_->graph();
  if (proto.output_size() == 0) bad_input(path, "has no outputs");
  if (proto.node_size() > kMaxOperators) {
    unsupported(path, "has {} nodes, allowed are {} (kMaxOperators)", proto.node_size(), kMaxOperators);
  }
  order_ = order_nodes(proto, given_names(proto), path);
}

std::vector<const ::onnx::NodeProto*> ModelReader::unknown_nodes() const {
  NameSet constants = constant_names(model_->graph());
  std::vector<const ::onnx::NodeProto*> unknown;
  for (const auto* const node : order_.nodes) {
    const std::vector<std::string> read = names_read(*node);
    const bool constant = std::ranges::all_of(read, [&](const std::string& name) { return constants.contains(name); });
    const Knowledge knowledge = knowledge_of(*node, options_);
    if (knowledge == Knowledge::unknown || (knowledge == Knowledge::constants && !constant)) unknown.push_back(node);
    // What an unknown operator makes of constants is a constant too: it is not the fault of those that read it.
    if (gives_constants(*node, constant)) constants.insert(node->output().begin(), node->output().end());
  }
  return unknown;
}

void ModelReader::begin() {
  const ::onnx::GraphProto& proto = model_->graph();
  graph_ = std::make_unique<GraphBuilder>(proto, path_, options_);
  if (!order_.unused.empty()) {
    graph_->network().notes.push_back(
        fmt::format("{}: nodes that no output depends on are left out: {}", path_, listed(order_.unused)));
  }
  add_inputs(proto, names_that_are_read(order_, proto), *graph_);
  // Before any is converted: a node's own name comes before those that are made of others.
  for (const auto* const node : order_.nodes) names_.push_back(graph_->unique_name(wanted_name(*node)));
}

void ModelReader::convert(std::size_t i) { convert_node(*order_.nodes[i], names_[i], opset_, *graph_); }

void ModelReader::note_pairs() {
  const int pairs = graph_->pairs();
  if (pairs == 0) return;
  const bool drops = options_.quantized == QuantizedPairs::drop;
  const std::string which = fmt::format("{}: {} pair{} of QuantizeLinear and DequantizeLinear {}", path_, pairs,
                                        pairs == 1 ? "" : "s", pairs == 1 ? "is" : "are");
  graph_->network().notes.push_back(
      drops ? fmt::format("{} left out; {} of them cut off what is below zero, which stays (ReLU)", which,
                          graph_->clipping_pairs())
            : fmt::format("{} simulated in float32; --quantized drop leaves them out", which));
}

void ModelReader::finish() {
  note_pairs();
  for (const auto& output : model_->graph().output()) graph_->add_output(output.name());
  if (const auto faults = verify(graph_->network()); !faults.empty()) {
    unsupported(path_, "{}", fmt::join(faults, "; "));
  }
}

}  // namespace burin
