// Network: what an importer returns: the graph of a model, or the layers of a weights file, each of which is a graph of
// its own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/conv_layer.h"
#include "ir/operators.h"
#include "ir/quantized_pairs.h"
#include "ir/tensor_layout.h"

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
  // One image has {channels, rows, columns} or {features}; around transposes also others, of up to kMaxActivationRank
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

  // The graph. Operators are in an order in which they can run.
  std::vector<Activations> tensors;
  std::vector<Operator> operators;
  std::vector<int> inputs, outputs;  // tensors; the inputs have no operator
  // The operators have no tensor in common: each is a program of its own, and its inputs and outputs are in the formats
  // in which it computes. Those of a model are plain, or loose halves where that was asked for.
  bool separate = false;
  // Standard deviation of the inputs that the weights were made for, where the file says it (docs/models.md).
  double input_std = 1;
  QuantizedPairs quantized = QuantizedPairs::simulate;  // how the file was read
};

// The graph of separate layers: a convolution for each, which has its name and whose tensors are "NAME.input",
// "NAME.residual" and "NAME.output" (of a very long name "layer 3.input" and so on). What the network had for a graph
// is lost.
void separate_layers(Network& network);
// A network of one of the operators, with its layer and its tensors.
Network network_of(const Network& network, const Operator& op);

// Whether a Convert can make the one format of the other: a plain one of any, and loose halves of halves in any
// layout; and the other way round.
bool can_convert(const TensorFormat& from, const TensorFormat& to);
// Whether a convolution may read the one and write the other: of one element type, or one side plain and the other in
// nchw8.
bool can_convolve(const TensorFormat& input, const TensorFormat& output);

// Whether an operator that is neither Convolution nor Convert can read images of this shape in the one format and write
// the other one.
bool can_take(const OperatorKind& kind, const std::vector<std::int64_t>& shape, const TensorFormat& input,
              const TensorFormat& output);

// All faults of the graph, each a sentence that names the operator, what is wrong and what is allowed; empty when it is
// legal: indices in range, each tensor with one producer that stands before its readers, shapes that follow from the
// operators, each layer legal and used by exactly one convolution.
std::vector<std::string> verify(const Network& network);

// The shape of an operator's output for inputs of these shapes; faults, of its attributes too, are added to `faults`
// (then the result is empty). Its layer must be a legal one.
std::vector<std::int64_t> output_shape(const Network& network, const Operator& op,
                                       const std::vector<std::vector<std::int64_t>>& inputs,
                                       std::vector<std::string>& faults);

// The shape as its axes are taken in this order; empty: as they are.
std::vector<std::int64_t> ordered(const std::vector<std::int64_t>& shape, const std::vector<int>& order);

// Whether a tensor has along each axis of one image as many values as another one, or one for all.
bool repeats_to(const std::vector<std::int64_t>& shape, const std::vector<std::int64_t>& whole);

// "64x112x112"
std::string shape_text(const std::vector<std::int64_t>& shape);

// What an operator computes, in words: "3x3, stride 2, pad 1, 91.0 % zero, bias, relu".
std::string describe(const Network& network, const Operator& op);

// A table, one line for each operator: "conv1  convolution  data -> conv1_out  3x224x224 -> 64x112x112  ...".
std::string print(const Network& network);

}  // namespace burin
