// A model between its bytes and its network: parsed, with its nodes in order, and the network that grows of them.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/import/import.h"
#include "compiler/import/onnx/graph_builder.h"
#include "compiler/import/onnx/node_order.h"

namespace burin {

class ModelReader {
 public:
  // `path` and `options` must outlive this. Throws Error(bad_input) for what is no model, and Error(unsupported) for
  // opsets that burin does not read.
  ModelReader(std::string_view bytes, const std::string& path, const ImportOptions& options);

  const ::onnx::ModelProto& model() const { return *model_; }
  const std::string& path() const { return path_; }
  const ImportOptions& options() const { return options_; }
  const std::vector<const ::onnx::NodeProto*>& nodes() const { return order_.nodes; }
  // Nodes of operators that burin does not know, or knows of constants alone while theirs are none.
  std::vector<const ::onnx::NodeProto*> unknown_nodes() const;

  // The network with its inputs and nothing else. Throws what add_inputs() does.
  void begin();
  GraphBuilder& graph() { return *graph_; }
  // Node i of nodes() becomes part of the network. Throws what convert_node() does.
  void convert(std::size_t i);
  // The outputs, when every node has been converted. Throws Error(unsupported) for those that no input leads to, and
  // for what the network as a whole may not be.
  void finish();

 private:
  void note_pairs();

  const std::string& path_;
  const ImportOptions& options_;
  std::unique_ptr<::onnx::ModelProto> model_;
  int opset_ = 0;
  NodeOrder order_;
  std::unique_ptr<GraphBuilder> graph_;
  std::vector<std::string> names_;  // of the operators that the nodes become
};

}  // namespace burin
