// The network while it grows, and what each name of the model stands for.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "compiler/import/import.h"
#include "compiler/import/onnx/constant_tensor.h"
#include "compiler/import/onnx/node.h"
#include "compiler/import/onnx/stored_tensor.h"
#include "ir/limits.h"
#include "ir/network.h"
#include "ir/numbered_names.h"

namespace burin {

// An activation: a tensor of the network. Booleans are 0 and 1 there. Its batch may be another axis than the first in
// the model: then the other axes in their order are those of one image.
struct Flowing {
  int tensor = 0;
  bool boolean = false;
  std::int64_t batch_axis = 0;
};

// What a converter reads of a list of integers, each value + batch * the number of images.
struct Size {
  std::int64_t batch = 0;
  std::int64_t value = 0;
};

struct Sizes {
  bool scalar = false;  // one value without an axis
  std::vector<Size> values;
};

inline constexpr std::size_t kMaxSizes = 64;  // of a list; a shape has as many as axes
// That are kept at once for constants which were computed.
inline constexpr std::int64_t kMaxFoldedNumbers = std::int64_t{1} << 28;

// What a name of the model can stand for; constants of the file are read when a node reads them.
using Value = std::variant<Flowing, StoredTensor, SharedConstant>;
using Meaning = std::variant<Value, const ::onnx::TensorProto*, const ::onnx::SparseTensorProto*>;

// What QuantizeLinear makes integers with: round(x / scale) + zero_point, within the type's range; the other way round
// in DequantizeLinear. One of each, or one for each index of an axis, or of a block along it.
struct Quantization {
  std::vector<double> scales;
  std::vector<std::int64_t> zero_points;  // as many
  bool operator==(const Quantization&) const = default;
};

class GraphBuilder {
 public:
  // `graph`, `path` and `options` must outlive this. Throws Error(bad_input) for constants that appear twice.
  GraphBuilder(const ::onnx::GraphProto& graph, const std::string& path, const ImportOptions& options);

  const std::string& path() const { return source_.path; }
  const ImportOptions& options() const { return options_; }
  Network& network() { return network_; }
  // Images, where the file fixes their number.
  std::optional<std::int64_t> fixed_batch;

  // `wanted`, or with a number after it when an operator has that name already.
  std::string unique_name(const std::string& wanted);
  // The initializers of a graph within the graph, and what its nodes read. It is kept as long as this is.
  const ::onnx::GraphProto& add_graph(const std::string& at, std::unique_ptr<::onnx::GraphProto> graph);
  // `wanted` with something after it, so that it is the name of no value.
  std::string unused_value_name(std::string wanted);

  // Values. Each throws when the input is of another kind than the one asked for, with the node's name.
  bool is_defined(const std::string& name) const { return values_.contains(name); }
  bool is_activation(const Node& node, int input) const { return flowing(node.input(input)) != nullptr; }
  // The value's tensor, where the network can end with it: an operator makes it, and it is no integers of a
  // quantization.
  std::optional<int> possible_output(const std::string& name) const;
  Value value(const Node& node, int input);
  int activation(const Node& node, int input);
  // The same whichever axis the batch is, and which one that is.
  int activation_by_any_batch(const Node& node, int input);
  std::int64_t batch_axis(const Node& node, int input) const;
  void mark_batch_axis(const std::string& name, std::int64_t axis);
  StoredTensor constant(const Node& node, int input, std::string_view what);
  std::vector<float> floats(const Node& node, const StoredTensor& tensor, std::string_view what);  // all finite
  float number(const Node& node, int input, std::string_view what);  // of a constant with one element
  // The numbers of a constant, whatever it was made of.
  SharedConstant numbers(const Node& node, int input);
  std::int64_t numbers_read() const { return read_; }  // by numbers(), of constants of the file
  bool all_constant(const Node& node) const;  // none of the inputs, of which there is at least one, is an activation
  // Nothing when the input is no list of integers, or is longer than kMaxSizes.
  std::optional<Sizes> sizes(const Node& node, int input);
  std::vector<std::int64_t> integers(const Node& node, int input, std::string_view what);
  // A list that is an attribute before opset `input_since`, and an input from there on; nothing when it is left out.
  std::optional<std::vector<std::int64_t>> list(const Node& node, const std::string& name, int input, int input_since);

  const std::vector<std::int64_t>& shape(int tensor) const { return network_.tensors[tensor].shape; }
  // Rows and columns too, or an error.
  const std::vector<std::int64_t>& image_shape(const Node& node, int tensor) const;

  // What the node's output is, the first one or another.
  void define(const Node& node, Meaning meaning);
  // Another output of the node, or what it needs.
  void define(const Node& node, const std::string& name, Meaning meaning);
  void define_constant(const Node& node, const std::string& name, ConstantTensor constant);
  // `to`, an output of the node, is what `from` is. What flows is copied by an operator, which passes remove.
  void pass_on(const Node& node, const std::string& from, const std::string& to);
  // The node's output stands for integers that only a DequantizeLinear with the same numbers may read: here it is what
  // that makes of them.
  void mark_quantized(const Node& node, Quantization quantization);
  // Null: the node's input is not such a one.
  const Quantization* quantization_of(const Node& node, int input) const;
  // Whether the node's input is an activation of booleans; and to say whether a value that flows is one.
  bool is_boolean(const Node& node, int input) const;
  void mark_boolean(const std::string& name, bool boolean);
  // Counts a pair; `clips`: it is left out, but for what it cuts off below zero.
  void count_pair(bool clips) { ++pairs_, clipping_pairs_ += clips ? 1 : 0; }
  int pairs() const { return pairs_; }
  int clipping_pairs() const { return clipping_pairs_; }
  // The node has been converted: a computed constant that nobody reads any more is dropped.
  void drop_unread(const Node& node);
  void emit(const Node& node, OperatorKind kind, std::vector<int> inputs, int output = 0);
  // The one that has the node's name, where operators behind it give the output; returns its tensor.
  int emit_named(const Node& node, OperatorKind kind, std::vector<int> inputs);
  // An operator before the one that gives the node's output; returns its tensor.
  int emit_inner(const Node& node, std::string_view suffix, OperatorKind kind, std::vector<int> inputs);
  // A tensor of a single one for each image, with two axes: what makes activations of constants.
  int one_of_each_image(const Node& node);
  // The layer gets its name from the operator that is emitted with it.
  Convolution add_layer(const Node& node, ConvLayer layer);

  int add_input(const std::string& name, std::vector<std::int64_t> shape);
  void add_output(const std::string& name);

  // The operator that makes the node's input, when nobody else reads that; null otherwise.
  Operator* sole_producer(const Node& node, int input);
  // The output of `producer` becomes that of the node.
  void take_over(const Node& node, const Operator& producer);
  bool is_read(const std::string& name) const { return readers_.count(name) > 0; }

  // Counts what the network holds of weights. Throws Error(unsupported) above kMaxNetworkWeights.
  void count_weights(const Node& node, std::int64_t weights);
  // |w| <= --zero-threshold becomes 0.
  void apply_zero_threshold(std::vector<float>& weights) const;

 private:
  const Flowing* flowing(const std::string& name) const;  // null: no activation
  int add_operator(const std::string& at, Operator op, const std::string& output);
  void require_free(const std::string& name, const std::string& at) const;

  void add_constants_and_readers(const ::onnx::GraphProto& graph, const std::string& at);

  TensorSource source_;
  std::vector<std::unique_ptr<::onnx::GraphProto>> inner_;  // graphs within the graph
  const ImportOptions& options_;
  Network network_;
  std::unordered_map<std::string, Meaning> values_;
  std::unordered_map<std::string, int> readers_;      // nodes and graph outputs
  std::unordered_map<std::string, int> unread_;       // those of them that have not read it yet
  std::unordered_map<std::string, int> producer_of_;  // operator that makes a value
  NumberedNames names_;                               // of operators
  std::set<std::string> tensor_names_;
  std::set<std::string> named_;                              // nodes whose name an operator before their output has
  std::unordered_map<std::string, Quantization> quantized_;  // values that stand for integers
  std::optional<int> ones_;                                  // one_of_each_image()
  int pairs_ = 0, clipping_pairs_ = 0;
  std::int64_t weights_ = 0;
  std::int64_t read_ = 0;    // numbers of constants of the file
  std::int64_t folded_ = 0;  // numbers of computed constants that are kept
};

}  // namespace burin
