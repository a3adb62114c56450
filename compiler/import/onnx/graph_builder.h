// The network while it grows, and what each name of the model stands for.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "compiler/import/import.h"
#include "compiler/import/onnx/node.h"
#include "compiler/import/onnx/value.h"
#include "ir/network.h"

namespace burin {

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

  // Values. Each throws when the input is of another kind than the one asked for, with the node's name.
  bool is_initializer(const std::string& name) const;
  bool is_defined(const std::string& name) const { return values_.count(name) > 0 || is_initializer(name); }
  bool is_activation(const Node& node, int input) const;
  Value value(const Node& node, int input);
  int activation(const Node& node, int input);
  StoredTensor constant(const Node& node, int input, std::string_view what);
  std::vector<float> floats(const Node& node, const StoredTensor& tensor, std::string_view what);  // all finite
  float number(const Node& node, int input, std::string_view what);  // of a constant with one element
  // Nothing when the input is neither a list of integers nor computed from shapes.
  std::optional<Sizes> sizes(const Node& node, int input);
  std::vector<std::int64_t> integers(const Node& node, int input, std::string_view what);

  const std::vector<std::int64_t>& shape(int tensor) const { return network_.tensors[tensor].shape; }
  // Rows and columns too, or an error.
  const std::vector<std::int64_t>& image_shape(const Node& node, int tensor) const;

  // What the node's output is.
  void define(const Node& node, Value value);
  void define_constant(const Node& node, const ::onnx::TensorProto& tensor);
  void define_constant(const Node& node, const ::onnx::SparseTensorProto& tensor);
  void emit(const Node& node, OperatorKind kind, std::vector<int> inputs);
  void emit_convolution(const Node& node, ConvLayer layer, int input);
  // An operator before the one that gives the node's output; returns its tensor.
  int emit_inner(const Node& node, std::string_view suffix, OperatorKind kind, std::vector<int> inputs);
  int emit_inner_convolution(const Node& node, std::string_view suffix, ConvLayer layer, int input);

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
  int add_operator(const std::string& at, Operator op, const std::string& output);
  int add_inner(const Node& node, const std::string& name, OperatorKind kind, std::vector<int> inputs);
  Convolution add_layer(const Node& node, ConvLayer layer);
  void require_free(const std::string& name, const std::string& at) const;

  TensorSource source_;
  const ImportOptions& options_;
  Network network_;
  std::unordered_map<std::string, const ::onnx::TensorProto*> initializers_;
  std::unordered_map<std::string, const ::onnx::SparseTensorProto*> sparse_;
  std::unordered_map<std::string, Value> values_;
  std::unordered_map<std::string, int> readers_;      // nodes and graph outputs
  std::unordered_map<std::string, int> producer_of_;  // operator that makes a value
  std::set<std::string> names_, tensor_names_;
  std::map<std::string, int> next_number_;  // of names that were taken
  std::int64_t weights_ = 0;
};

}  // namespace burin
