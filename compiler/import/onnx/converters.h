// One function for each operator of ONNX: from a node to operators of the network.
#pragma once

#include <limits>
#include <string_view>

#include "compiler/import/onnx/graph_builder.h"
#include "compiler/import/onnx/node.h"

namespace burin {

// Defines the node's first output in `graph`. Throws Error(bad_input) for a node that breaks ONNX's rules, and
// Error(unsupported) for one that keeps them but asks for what burin cannot do.
using ConvertFunction = void (*)(const Node& node, GraphBuilder& graph);

inline constexpr int kAnyInputs = std::numeric_limits<int>::max();

struct Converter {
  std::string_view op;
  int fewest_inputs, most_inputs;  // those that may not be left out, and all (kAnyInputs: a list, none left out)
  ConvertFunction convert;
};

// Null for an operator that burin does not know.
const Converter* find_converter(std::string_view op);

// convert_conv.cpp
void convert_conv(const Node&, GraphBuilder&);
void convert_gemm(const Node&, GraphBuilder&);
void convert_matmul(const Node&, GraphBuilder&);

// convert_arithmetic.cpp
void convert_add(const Node&, GraphBuilder&);
void convert_sub(const Node&, GraphBuilder&);
void convert_mul(const Node&, GraphBuilder&);
void convert_div(const Node&, GraphBuilder&);
void convert_sum(const Node&, GraphBuilder&);

// convert_elementwise.cpp
void convert_relu(const Node&, GraphBuilder&);
void convert_leaky_relu(const Node&, GraphBuilder&);
void convert_sigmoid(const Node&, GraphBuilder&);
void convert_hard_sigmoid(const Node&, GraphBuilder&);
void convert_hard_swish(const Node&, GraphBuilder&);
void convert_clip(const Node&, GraphBuilder&);

// convert_normalization.cpp
void convert_batch_normalization(const Node&, GraphBuilder&);
void convert_lrn(const Node&, GraphBuilder&);
void convert_softmax(const Node&, GraphBuilder&);

// convert_pool.cpp
void convert_max_pool(const Node&, GraphBuilder&);
void convert_average_pool(const Node&, GraphBuilder&);
void convert_global_average_pool(const Node&, GraphBuilder&);
void convert_global_max_pool(const Node&, GraphBuilder&);
void convert_reduce_mean(const Node&, GraphBuilder&);
void convert_pad(const Node&, GraphBuilder&);

// convert_layout.cpp
void convert_concat(const Node&, GraphBuilder&);
void convert_flatten(const Node&, GraphBuilder&);
void convert_reshape(const Node&, GraphBuilder&);
void convert_squeeze(const Node&, GraphBuilder&);
void convert_unsqueeze(const Node&, GraphBuilder&);
void convert_transpose(const Node&, GraphBuilder&);

// convert_plain.cpp
void convert_identity(const Node&, GraphBuilder&);
void convert_dropout(const Node&, GraphBuilder&);
void convert_cast(const Node&, GraphBuilder&);
void convert_constant(const Node&, GraphBuilder&);

// convert_channels.cpp: Gather of an activation
void gather_channels(const Node&, GraphBuilder&);

// convert_sizes.cpp
void convert_shape(const Node&, GraphBuilder&);
void convert_gather(const Node&, GraphBuilder&);
void convert_slice(const Node&, GraphBuilder&);

}  // namespace burin
