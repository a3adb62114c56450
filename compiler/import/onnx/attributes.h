// The attributes of a node, each read as the type that its operator gives it.
#pragma once

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace burin {

// An attribute that is absent leaves a default. Every fault is one Error(bad_input) that starts with `at`: an attribute
// that appears twice, one of another type, a number that is not finite.
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

  // Attributes that were not asked for: a rule that burin does not know could change what the operator means.
  std::vector<std::string> unread() const;

 private:
  const ::onnx::AttributeProto* find(const std::string& name, ::onnx::AttributeProto::AttributeType type) const;

  std::string at_;
  std::map<std::string, const ::onnx::AttributeProto*> by_name_;
  mutable std::set<std::string> read_;
};

}  // namespace burin
