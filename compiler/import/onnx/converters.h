// One function for each operator of ONNX: from a node to operators of the network.
#pragma once

#include <limits>
#include <string_view>

#include "compiler/import/onnx/graph_builder.h"
#include "compiler/import/onnx/node.h"

namespace burin {

// Defines the node's first output in `graph`, and its others where it computes them. Throws Error(bad_input) for a node
// that breaks ONNX's rules, and Error(unsupported) for one that keeps them but asks for what burin cannot do.
using ConvertFunction = void (*)(const Node& node, GraphBuilder& graph);

inline constexpr int kAnyInputs = std::numeric_limits<int>::max();

struct Converter {
  std::string_view op;
  int fewest_inputs, most_inputs;  // those that may not be left out, and all (kAnyInputs: a list, none left out)
  ConvertFunction convert;
};

#define BURIN_CONVERTER(op, fewest, most, convert) void convert(const Node& node, GraphBuilder& graph);
#include "compiler/import/onnx/converters.def"
#undef BURIN_CONVERTER

// The same of a node whose operator a user gives (ImportOptions::operators): all of its one output. `name`:
// operator_text().
void convert_users_own(const Node& node, const std::string& name, GraphBuilder& graph);

// Whether the node repeats a constant as often as there are images, and what then becomes of it: an activation.
bool repeats_constant_for_images(const Node& node, GraphBuilder& graph);
void convert_constant_of_images(const Node& node, GraphBuilder& graph);

}  // namespace burin
