// ONNX models made in memory, well-formed or not.
#pragma once

#include <onnx/onnx_pb.h>

#include <string>
#include <vector>

#include "compiler/import/import.h"

namespace burin_test {

inline constexpr std::int64_t kSymbolic = -1;  // an extent that has a name instead of a number

// A node that add_node() made; its attributes are set one after the other.
class NodeMaker {
 public:
  explicit NodeMaker(onnx::NodeProto& node) : node(node) {}
  NodeMaker& set(const std::string& attribute, std::int64_t value);
  NodeMaker& set(const std::string& attribute, int value) { return set(attribute, std::int64_t{value}); }
  NodeMaker& set(const std::string& attribute, float value);
  NodeMaker& set(const std::string& attribute, const char* value);
  NodeMaker& set(const std::string& attribute, const std::vector<std::int64_t>& values);
  onnx::AttributeProto& add(const std::string& attribute, onnx::AttributeProto::AttributeType type);

  onnx::NodeProto& node;
};

class OnnxModel {
 public:
  explicit OnnxModel(int opset = 13);
  // One input `x` with the extents after the batch, one output `y`.
  static OnnxModel of_image(const std::vector<std::int64_t>& extents, int opset = 13);

  void input(const std::string& name, const std::vector<std::int64_t>& dims);
  void output(const std::string& name);
  // Its name is empty: it is called after its output.
  NodeMaker add_node(const std::string& op, const std::vector<std::string>& inputs, const std::string& output = "y");
  // Values 1, 2, 3 ... when none are given.
  onnx::TensorProto& floats(const std::string& name, const std::vector<std::int64_t>& dims,
                            std::vector<float> values = {});
  onnx::TensorProto& integers(const std::string& name, const std::vector<std::int64_t>& values);
  onnx::TensorProto& integer(const std::string& name, std::int64_t value);  // without an axis

  std::string bytes() const { return proto.SerializeAsString(); }
  burin::Network import(const burin::ImportOptions& options = {}) const;

  onnx::ModelProto proto;
};

void set_floats(onnx::TensorProto& tensor, const std::vector<std::int64_t>& dims, const std::vector<float>& values);
void set_integers(onnx::TensorProto& tensor, const std::vector<std::int64_t>& dims,
                  const std::vector<std::int64_t>& values);

// The attributes of the network's only operator, or of the last.
template <typename Kind>
const Kind& last(const burin::Network& network) {
  return std::get<Kind>(network.operators.back().kind);
}
// It is about the tensor that the last operator makes.
const std::vector<std::int64_t>& last_shape(const burin::Network& network);

// Kinds of all operators: "convolution elementwise".
std::string kinds(const burin::Network& network);

}  // namespace burin_test
