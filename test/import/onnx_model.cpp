#include "test/import/onnx_model.h"

#include <functional>
#include <numeric>

#include "compiler/import/onnx/onnx_import.h"

namespace burin_test {

using onnx::AttributeProto;

onnx::AttributeProto& NodeMaker::add(const std::string& attribute, AttributeProto::AttributeType type) {
  auto* const proto = node.add_attribute();
  proto->set_name(attribute);
  proto->set_type(type);
  return *proto;
}

NodeMaker& NodeMaker::set(const std::string& attribute, std::int64_t value) {
  add(attribute, AttributeProto::INT).set_i(value);
  return *this;
}

NodeMaker& NodeMaker::set(const std::string& attribute, float value) {
  add(attribute, AttributeProto::FLOAT).set_f(value);
  return *this;
}

NodeMaker& NodeMaker::set(const std::string& attribute, const char* value) {
  add(attribute, AttributeProto::STRING).set_s(value);
  return *this;
}

NodeMaker& NodeMaker::set(const std::string& attribute, const std::vector<std::int64_t>& values) {
  auto& proto = add(attribute, AttributeProto::INTS);
  for (const std::int64_t value : values) proto.add_ints(value);
  return *this;
}

OnnxModel::OnnxModel(int opset) {
  proto.set_ir_version(7);
  proto.add_opset_import()->set_version(opset);
  proto.mutable_graph()->set_name("test");
}

OnnxModel OnnxModel::of_image(const std::vector<std::int64_t>& extents, int opset) {
  OnnxModel model(opset);
  std::vector<std::int64_t> dims = {kSymbolic};
  dims.insert(dims.end(), extents.begin(), extents.end());
  model.input("x", dims);
  model.output("y");
  return model;
}

void OnnxModel::input(const std::string& name, const std::vector<std::int64_t>& dims) {
  auto* const info = proto.mutable_graph()->add_input();
  info->set_name(name);
  auto* const type = info->mutable_type()->mutable_tensor_type();
  type->set_elem_type(onnx::TensorProto::FLOAT);
  for (const std::int64_t extent : dims) {
    auto* const dim = type->mutable_shape()->add_dim();
    if (extent == kSymbolic) {
      dim->set_dim_param("N");
    } else {
      dim->set_dim_value(extent);
    }
  }
}

void OnnxModel::output(const std::string& name) { proto.mutable_graph()->add_output()->set_name(name); }

NodeMaker OnnxModel::add_node(const std::string& op, const std::vector<std::string>& inputs,
                              const std::string& output) {
  auto* const node = proto.mutable_graph()->add_node();
  node->set_op_type(op);
  for (const std::string& input : inputs) node->add_input(input);
  node->add_output(output);
  return NodeMaker(*node);
}

onnx::TensorProto& OnnxModel::floats(const std::string& name, const std::vector<std::int64_t>& dims,
                                     std::vector<float> values) {
  if (values.empty()) {
    values.resize(std::accumulate(dims.begin(), dims.end(), std::size_t{1}, std::multiplies<>()));
    std::iota(values.begin(), values.end(), 1.0F);
  }
  auto* const tensor = proto.mutable_graph()->add_initializer();
  tensor->set_name(name);
  set_floats(*tensor, dims, values);
  return *tensor;
}

onnx::TensorProto& OnnxModel::integers(const std::string& name, const std::vector<std::int64_t>& values) {
  auto* const tensor = proto.mutable_graph()->add_initializer();
  tensor->set_name(name);
  set_integers(*tensor, {static_cast<std::int64_t>(values.size())}, values);
  return *tensor;
}

onnx::TensorProto& OnnxModel::integer(const std::string& name, std::int64_t value) {
  auto& tensor = integers(name, {value});
  tensor.clear_dims();
  return tensor;
}

burin::Network OnnxModel::import(const burin::ImportOptions& options) const {
  return burin::import_onnx(bytes(), "net.onnx", options);
}

void set_floats(onnx::TensorProto& tensor, const std::vector<std::int64_t>& dims, const std::vector<float>& values) {
  tensor.set_data_type(onnx::TensorProto::FLOAT);
  for (const std::int64_t extent : dims) tensor.add_dims(extent);
  for (const float value : values) tensor.add_float_data(value);
}

void set_integers(onnx::TensorProto& tensor, const std::vector<std::int64_t>& dims,
                  const std::vector<std::int64_t>& values) {
  tensor.set_data_type(onnx::TensorProto::INT64);
  for (const std::int64_t extent : dims) tensor.add_dims(extent);
  for (const std::int64_t value : values) tensor.add_int64_data(value);
}

const std::vector<std::int64_t>& last_shape(const burin::Network& network) {
  return network.tensors[static_cast<std::size_t>(network.operators.back().output)].shape;
}

std::string kinds(const burin::Network& network) {
  std::string text;
  for (const burin::Operator& op : network.operators) {
    if (!text.empty()) text += ' ';
    text += burin::kind_name(op.kind);
  }
  return text;
}

}  // namespace burin_test
