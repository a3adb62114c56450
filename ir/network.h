// Network: what an importer returns. A weights file gives layers alone; a model file gives the graph as well.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/conv_layer.h"
#include "ir/operators.h"
#include "ir/tensor_format.h"

namespace burin {

// A tensor of the input that no layer consumed; it is carried into the package as it is.
struct NamedTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  std::vector<float> values;
};

// An activation that flows between operators.
struct Activations {
  std::string name;
  // Of one image: {channels, rows, columns} or {features}; around transposes also others, of up to kMaxActivationRank
  // axes.
  std::vector<std::int64_t> shape;
  TensorFormat format = {};       // in memory
  std::int64_t elements() const;  // of one image
};

// One operator of the graph. Tensors are indices into Network::tensors.
struct Operator {
  std::string name;  // unique within the network
  OperatorKind kind;
  std::vector<int> inputs;
  int output = 0;
};

struct Network {
  std::string source;             // the file it came from
  std::vector<ConvLayer> layers;  // in the order of the file
  std::vector<NamedTensor> leftover;
  std::vector<std::string> notes;  // what the user should know, one sentence each (printed to stderr)

  // The graph; empty when the file holds only weights. Operators are in an order in which they can run.
  std::vector<Activations> tensors;
  std::vector<Operator> operators;
  std::vector<int> inputs, outputs;  // tensors; the inputs have no operator
  // Standard deviation of the inputs that the weights were made for, where the file says it (docs/models.md).
  double input_std = 1;

  bool has_graph() const { return !operators.empty(); }
};

// All faults of the graph, each a sentence that names the operator, what is wrong and what is allowed; empty when it is
// legal: indices in range, each tensor with one producer that stands before its readers, shapes that follow from the
// operators, each layer legal and used by exactly one convolution. A network without a graph is not looked at.
std::vector<std::string> verify(const Network& network);

// The shape of an operator's output for inputs of these shapes; faults, of its attributes too, are added to `faults`
// (then the result is empty). Its layer must be a legal one.
std::vector<std::int64_t> output_shape(const Network& network, const Operator& op,
                                       const std::vector<std::vector<std::int64_t>>& inputs,
                                       std::vector<std::string>& faults);

// "64x112x112"
std::string shape_text(const std::vector<std::int64_t>& shape);

// What an operator computes, in words: "3x3, stride 2, pad 1, 91.0 % zero, bias, relu".
std::string describe(const Network& network, const Operator& op);

// A table, one line for each operator: "conv1  convolution  data -> conv1_out  3x224x224 -> 64x112x112  ...".
std::string print(const Network& network);

}  // namespace burin
