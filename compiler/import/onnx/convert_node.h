// One node of the model: converted, or evaluated where its inputs are constants.
#pragma once

#include <string>

#include "compiler/import/onnx/converters.h"
#include "compiler/import/onnx/graph_builder.h"

namespace burin {

// How far burin knows an operator.
enum class Knowledge { unknown, constants, all };  // `constants`: where it follows from constants and shapes alone
// One that a user gives is known, whatever burin knows.
Knowledge knowledge_of(const ::onnx::NodeProto& node, const ImportOptions& options);

// Whether the outputs are constants when these inputs are: those of Shape and Size always.
bool gives_constants(const ::onnx::NodeProto& node, bool constant_inputs);

// The name of the operator that becomes of the node: its own, or that of its first output.
std::string wanted_name(const ::onnx::NodeProto& node);

// Defines all outputs of the node in `graph`. `name`: of the operator that it becomes. Throws what converters throw.
void convert_node(const ::onnx::NodeProto& node, std::string name, int opset, GraphBuilder& graph);

}  // namespace burin
