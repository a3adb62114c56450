// What burin reads of a model, node by node: all that is refused in one pass, not only the first.
#pragma once

#include <string>
#include <vector>

#include "compiler/import/import.h"

namespace burin {

enum class NodeState { read, refused, not_reached };  // `not_reached`: reads what a refused node would make
constexpr EnumNames<3> names_of(NodeState) { return {"a state", {"read", "refused", "not reached"}}; }

struct NodeCoverage {
  std::string op;    // "Conv", "com.microsoft::FusedConv"
  std::string node;  // its name, or that of its first output
  NodeState state = NodeState::read;
  std::string reason, help;  // of a refused node: why, and what would help where more is known than the reason says
};

struct Coverage {
  std::vector<NodeCoverage> nodes;  // in the order in which they can run; those that no output depends on are left out
  std::string fault;                // of the network as a whole, when all nodes are read; else empty
  std::vector<std::string> notes;   // what the user should know, one sentence each
  // Outputs with which the model can be read, ImportOptions::outputs: those of its own that are, and what the nodes
  // that are not read take from those before them. Empty: all is read, or nothing is before what is not.
  std::vector<std::string> cut;

  bool is_complete() const;
  int nodes_read() const;
};

// Covers an ONNX model. Throws Error for what is no readable model: damage, opsets, inputs without sizes, cycles.
Coverage cover_model(const std::string& path, const ImportOptions& options = {});

}  // namespace burin
