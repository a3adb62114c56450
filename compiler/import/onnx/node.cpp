#include "compiler/import/onnx/node.h"

#include <cmath>

#include "compiler/import/faults.h"
#include "ir/printable.h"

namespace burin {

using ::onnx::AttributeProto;

Attributes::Attributes(const ::onnx::NodeProto& node, std::string at) : at_(std::move(at)) {
  for (const AttributeProto& attribute : node.attribute()) {
    if (!by_name_.emplace(attribute.name(), &attribute).second) {
      bad_input(at_, "has the attribute {} twice", in_quotes(attribute.name()));
    }
  }
}

const AttributeProto* Attributes::find(const std::string& name, AttributeProto::AttributeType type) const {
  read_.insert(name);
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) return nullptr;
  const AttributeProto& attribute = *found->second;
  // Files from before ONNX's second version do not say the type.
  if (attribute.has_type() && attribute.type() != AttributeProto::UNDEFINED && attribute.type() != type) {
    bad_input(at_, "attribute '{}' is of type {}, it must be {}", name,
              AttributeProto::AttributeType_Name(attribute.type()), AttributeProto::AttributeType_Name(type));
  }
  return &attribute;
}

std::int64_t Attributes::integer(const std::string& name, std::int64_t absent) const {
  const AttributeProto* const attribute = find(name, AttributeProto::INT);
  return attribute == nullptr ? absent : attribute->i();
}

bool Attributes::boolean(const std::string& name, bool absent) const {
  const std::int64_t value = integer(name, absent ? 1 : 0);
  if (value != 0 && value != 1) bad_input(at_, "attribute '{}' is {}, it must be 0 or 1", name, value);
  return value == 1;
}

float Attributes::number(const std::string& name, float absent) const {
  const AttributeProto* const attribute = find(name, AttributeProto::FLOAT);
  if (attribute == nullptr) return absent;
  if (!std::isfinite(attribute->f())) bad_input(at_, "attribute '{}' is {}, it must be finite", name, attribute->f());
  return attribute->f();
}

std::string Attributes::text(const std::string& name, const std::string& absent) const {
  const AttributeProto* const attribute = find(name, AttributeProto::STRING);
  return attribute == nullptr ? absent : attribute->s();
}

std::optional<std::vector<std::int64_t>> Attributes::integers(const std::string& name) const {
  const AttributeProto* const attribute = find(name, AttributeProto::INTS);
  if (attribute == nullptr) return std::nullopt;
  return std::vector<std::int64_t>(attribute->ints().begin(), attribute->ints().end());
}

std::optional<std::vector<float>> Attributes::numbers(const std::string& name) const {
  const AttributeProto* const attribute = find(name, AttributeProto::FLOATS);
  if (attribute == nullptr) return std::nullopt;
  return std::vector<float>(attribute->floats().begin(), attribute->floats().end());
}

const ::onnx::TensorProto* Attributes::tensor(const std::string& name) const {
  const AttributeProto* const attribute = find(name, AttributeProto::TENSOR);
  return attribute == nullptr ? nullptr : &attribute->t();
}

const ::onnx::SparseTensorProto* Attributes::sparse_tensor(const std::string& name) const {
  const AttributeProto* const attribute = find(name, AttributeProto::SPARSE_TENSOR);
  return attribute == nullptr ? nullptr : &attribute->sparse_tensor();
}

const ::onnx::GraphProto* Attributes::graph(const std::string& name) const {
  const AttributeProto* const attribute = find(name, AttributeProto::GRAPH);
  return attribute == nullptr ? nullptr : &attribute->g();
}

std::vector<UserAttribute> Attributes::all_numbers() const {
  std::vector<UserAttribute> numbers;
  for (const auto& [name, attribute] : by_name_) {
    const bool whole = attribute->type() == AttributeProto::INT;
    if (!whole && attribute->type() != AttributeProto::FLOAT) {
      unsupported(at_, "attribute {} is of type {}; an operator of --operator has numbers alone, INT and FLOAT",
                  in_quotes(name), AttributeProto::AttributeType_Name(attribute->type()));
    }
    constexpr std::int64_t kMostWhole = std::int64_t{1} << 53;  // that a double holds
    if (whole && (integer(name, 0) > kMostWhole || integer(name, 0) < -kMostWhole)) {
      unsupported(at_, "attribute {} is {}, beyond 2^53", in_quotes(name), integer(name, 0));
    }
    numbers.push_back({name, whole ? static_cast<double>(integer(name, 0)) : number(name, 0), whole});
    if (!is_identifier(name)) bad_input(at_, "attribute {} has a name that is no identifier of C++", in_quotes(name));
  }
  return numbers;
}

std::vector<std::string> Attributes::unread() const {
  std::vector<std::string> names;
  for (const auto& [name, attribute] : by_name_) {
    if (read_.count(name) == 0) names.push_back(name);
  }
  return names;
}

std::string first_output(const ::onnx::NodeProto& node) {
  const auto& outputs = node.output();
  const auto named = std::ranges::find_if(outputs, [](const std::string& output) { return !output.empty(); });
  return named == outputs.end() ? std::string() : *named;
}

std::string node_text(const ::onnx::NodeProto& node) {
  return fmt::format("{} ({})", in_quotes(node.name().empty() ? first_output(node) : node.name()),
                     printable(node.op_type()));
}

Node::Node(const ::onnx::NodeProto& proto, std::string name, int opset, const std::string& path)
    : proto_(proto),
      name_(std::move(name)),
      at_(fmt::format("{}: node {}", path, node_text(proto))),
      opset_(opset),
      attributes_(proto, at_) {}

}  // namespace burin
