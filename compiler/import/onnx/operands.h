// Operands of which one may repeat values of the other, as ONNX has it: axes are aligned from the last one on, and
// those of extent 1 stand for all.
#pragma once

#include <optional>
#include <vector>

#include "compiler/import/onnx/graph_builder.h"
#include "compiler/import/onnx/node.h"

namespace burin {

// The constant as it meets one image of the shape. Throws Error(unsupported) where that cannot be: it has more axes, or
// more values along one, or differs by image.
ConstantOperand constant_operand(const Node& node, GraphBuilder& graph, int input,
                                 const std::vector<std::int64_t>& shape);

// Its numbers where it has one, or one for each channel: what a ChannelAffine takes.
std::optional<std::vector<float>> by_channel(const ConstantOperand& constant, std::int64_t channels);

// An activation and a constant of which each repeats values of the other, where it must: the activation becomes larger
// where the constant is.
struct Met {
  int x = 0;
  ConstantOperand constant;
};
// `input` is the constant. Booleans are read as 0 and 1 where the operator takes such.
Met met_by_constant(const Node& node, GraphBuilder& graph, int input, int x);

// The one number of a constant with one element, of no more axes than what flows into the node. With more of them it
// gives its result more, which other ways refuse.
std::optional<float> only_number(const Node& node, GraphBuilder& graph, int input);

// What is left to emit: a kind and what it reads.
struct Pending {
  OperatorKind kind;
  std::vector<int> inputs;
};
// Combines activations, of which each may repeat values of the other. Neither `op` has a constant yet.
Pending combined(const Node& node, GraphBuilder& graph, Combine op, int a, int b);
// An activation with a constant behind it, or before it where `swapped`.
Pending combined(Combine op, Met met, bool swapped);

// The node's two operands, of which one may be a constant.
Pending of_both(const Node& node, GraphBuilder& graph, Combine op);

// As what the node gives.
void emit(const Node& node, GraphBuilder& graph, Pending pending);

// Emits, as what the node gives, an activation times one number.
void emit_scaled(const Node& node, GraphBuilder& graph, int x, float scale, std::optional<Elementwise> then = {});

// Axes of one image, ascending, of those that ONNX counts from the batch on or, negative, from the end. Where the file
// fixes the batch to one image, the batch says nothing among others. Throws Error(bad_input) for what is no axis, and
// Error(unsupported) for a batch of more, or for nothing but the batch, whose images `what` would mix.
std::vector<int> image_axes(const Node& node, const GraphBuilder& graph, const std::vector<std::int64_t>& axes,
                            const std::vector<std::int64_t>& shape, std::string_view what);
// From one axis to the last.
std::vector<int> trailing_axes(const Node& node, const GraphBuilder& graph, std::int64_t first,
                               const std::vector<std::int64_t>& shape, std::string_view what);

}  // namespace burin
