// A node of the model as its converter sees it.
#pragma once

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "compiler/import/faults.h"
#include "ir/user_function.h"

namespace burin {

// The attributes of a node, each read as the type that its operator gives it. One that is absent leaves a default.
// Every fault is one Error(bad_input) that starts with `at`: an attribute that appears twice, one of another type, a
// number that is not finite.
class Attributes {
 public:
  Attributes(const ::onnx::NodeProto& node, std::string at);

  bool has(const std::string& name) const { return by_name_.count(name) > 0; }
  std::int64_t integer(const std::string& name, std::int64_t absent) const;
  bool boolean(const std::string& name, bool absent) const;
  float number(const std::string& name, float absent) const;
  std::string text(const std::string& name, const std::string& absent) const;
  std::optional<std::vector<std::int64_t>> integers(const std::string& name) const;
  std::optional<std::vector<float>> numbers(const std::string& name) const;
  // Null when absent.
  const ::onnx::TensorProto* tensor(const std::string& name) const;
  const ::onnx::SparseTensorProto* sparse_tensor(const std::string& name) const;
  const ::onnx::GraphProto* graph(const std::string& name) const;

  // All of them, of an operator that a user gives: numbers alone.
  std::vector<UserAttribute> all_numbers() const;

  // Attributes that were not asked for: a rule that burin does not know could change what the operator means.
  std::vector<std::string> unread() const;

 private:
  const ::onnx::AttributeProto* find(const std::string& name, ::onnx::AttributeProto::AttributeType type) const;

  std::string at_;
  std::map<std::string, const ::onnx::AttributeProto*> by_name_;
  mutable std::set<std::string> read_;
};

// "'conv1' (Conv)", or the output's name where the node has none.
std::string node_text(const ::onnx::NodeProto& node);
// The first of its outputs that has a name; empty where none has.
std::string first_output(const ::onnx::NodeProto& node);

class Node {
 public:
  // `name`: of the operator that it becomes. `proto` must outlive this.
  Node(const ::onnx::NodeProto& proto, std::string name, int opset, const std::string& path);

  const std::string& op() const { return proto_.op_type(); }
  const std::string& name() const { return name_; }
  const std::string& at() const { return at_; }  // "net.onnx: node 'conv1' (Conv)"
  int opset() const { return opset_; }
  const Attributes& attributes() const { return attributes_; }

  int inputs() const { return proto_.input_size(); }
  // Inputs that may be left out have no name.
  bool has_input(int index) const { return index < proto_.input_size() && !proto_.input(index).empty(); }
  const std::string& input(int index) const { return proto_.input(index); }
  int outputs() const { return proto_.output_size(); }
  // Empty for one that is left out.
  const std::string& output(int index = 0) const { return proto_.output(index); }

  template <typename... Args>
  [[noreturn]] void bad_input(fmt::format_string<Args...> format, Args&&... args) const {
    burin::bad_input(at_, format, std::forward<Args>(args)...);
  }
  template <typename... Args>
  [[noreturn]] void unsupported(fmt::format_string<Args...> format, Args&&... args) const {
    burin::unsupported(at_, format, std::forward<Args>(args)...);
  }

 private:
  const ::onnx::NodeProto& proto_;
  std::string name_, at_;
  int opset_;
  Attributes attributes_;
};

}  // namespace burin
