#include "compiler/import/onnx/node.h"

#include "ir/printable.h"

namespace burin {

std::string node_text(const ::onnx::NodeProto& node) {
  const bool named_by_output = node.name().empty() && node.output_size() > 0;
  return fmt::format("{} ({})", in_quotes(named_by_output ? node.output(0) : node.name()), printable(node.op_type()));
}

Node::Node(const ::onnx::NodeProto& proto, std::string name, int opset, const std::string& path)
    : proto_(proto),
      name_(std::move(name)),
      at_(fmt::format("{}: node {}", path, node_text(proto))),
      opset_(opset),
      attributes_(proto, at_) {}

}  // namespace burin
