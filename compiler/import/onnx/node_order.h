// The nodes of a model in an order in which they can run.
#pragma once

#include <onnx/onnx_pb.h>

#include <string>
#include <unordered_set>
#include <vector>

namespace burin {

// What a node reads: its inputs that are not left out, and what the graphs in its attributes read of the graph around.
std::vector<std::string> names_read(const ::onnx::NodeProto& node);

struct NodeOrder {
  std::vector<const ::onnx::NodeProto*>
      nodes;                        // those that an output of the graph needs; as in the file where possible
  std::vector<std::string> unused;  // names of the others
};

// `given`: names that no node makes, inputs and initializers. Throws Error(bad_input) for cycles, for values that are
// made twice or by nobody, for nodes without an output, and for names that are no plain text.
NodeOrder order_nodes(const ::onnx::GraphProto& graph, const std::unordered_set<std::string>& given,
                      const std::string& path);

}  // namespace burin
