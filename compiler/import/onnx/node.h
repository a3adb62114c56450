// A node of the model as its converter sees it.
#pragma once

#include <onnx/onnx_pb.h>

#include <string>
#include <utility>

#include "compiler/import/faults.h"
#include "compiler/import/onnx/attributes.h"

namespace burin {

// "'conv1' (Conv)", or the output's name where the node has none.
std::string node_text(const ::onnx::NodeProto& node);

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
  const std::string& output() const { return proto_.output(0); }

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
