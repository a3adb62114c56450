// If: the branch that a constant condition takes becomes part of the graph.
#include "test/import/files.h"
#include "test/import/onnx_constants.h"
#include "test/import/onnx_faults.h"

using namespace burin;
using namespace burin_test;

namespace {

// A node that reads names around the branch, and gives its output.
void set_branch(NodeMaker& node, const std::string& attribute, const std::string& op,
                const std::vector<std::string>& inputs, const std::string& inner = "inner") {
  auto& branch = *node.add(attribute, onnx::AttributeProto::GRAPH).mutable_g();
  branch.set_name(attribute);
  auto& first = *branch.add_node();
  first.set_op_type(op);
  for (const std::string& input : inputs) first.add_input(input);
  first.add_output(inner);
  auto& second = *branch.add_node();
  second.set_op_type("Relu");
  second.add_input(inner);
  second.add_output(inner + " relu");
  branch.add_output()->set_name(inner + " relu");
}

// Squeezes the columns of x where there is one: as torch exports squeeze(3).
OnnxModel squeeze_model(std::int64_t columns) {
  OnnxModel model = OnnxModel::of_image({4, 2, columns});
  model.add_node("Shape", {"x"}, "shape");
  model.integer("three", 3);
  model.integer("one", 1);
  model.integers("axes", {3});
  model.add_node("Gather", {"shape", "three"}, "columns");
  model.add_node("Equal", {"columns", "one"}, "condition");
  NodeMaker node = model.add_node("If", {"condition"});
  set_branch(node, "then_branch", "Squeeze", {"x", "axes"});
  set_branch(node, "else_branch", "Identity", {"x"});
  return model;
}

}  // namespace

TEST_CASE("onnx if: the branch that is taken") {
  const Network taken = squeeze_model(1).import();
  CHECK(kinds(taken) == "reshape elementwise identity");
  CHECK(last_shape(taken) == Dims{4, 2});
  CHECK(taken.tensors[static_cast<std::size_t>(taken.outputs[0])].name == "y");
  const Network other = squeeze_model(3).import();
  CHECK(kinds(other) == "identity elementwise identity");
  CHECK(last_shape(other) == Dims{4, 2, 3});
}

TEST_CASE("onnx if: branches of several nodes may use one name") {
  OnnxModel model = OnnxModel::of_image({4});
  booleans(model, "yes", {true});
  booleans(model, "no", {false});
  NodeMaker first = model.add_node("If", {"yes"}, "a");
  set_branch(first, "then_branch", "Identity", {"x"});
  set_branch(first, "else_branch", "Sigmoid", {"x"});
  NodeMaker second = model.add_node("If", {"no"});
  set_branch(second, "then_branch", "Identity", {"a"});
  set_branch(second, "else_branch", "Sigmoid", {"a"});
  CHECK(kinds(model.import()) == "identity elementwise identity elementwise elementwise identity");
}

TEST_CASE("onnx if: a branch has constants of its own, and a branch within") {
  OnnxModel model = OnnxModel::of_image({2, 3, 3});
  booleans(model, "yes", {true});
  NodeMaker outer = model.add_node("If", {"yes"});
  auto& branch = *outer.add("then_branch", onnx::AttributeProto::GRAPH).mutable_g();
  auto& constant = *branch.add_initializer();
  constant.set_name("shift");
  set_floats(constant, {}, {5});
  NodeMaker inner(*branch.add_node());
  inner.node.set_op_type("If");
  inner.node.add_input("yes");
  inner.node.add_output("inner y");
  set_branch(inner, "then_branch", "Add", {"x", "shift"});
  branch.add_output()->set_name("inner y");
  CHECK(kinds(model.import()) == "channel_affine elementwise identity identity");
}

TEST_CASE("onnx if: a constant comes out of it") {
  OnnxModel model = OnnxModel::of_image({2, 3, 3});
  booleans(model, "no", {false});
  model.floats("four", {}, {-4});
  NodeMaker node = model.add_node("If", {"no"}, "c");
  set_branch(node, "else_branch", "Neg", {"four"});
  model.add_node("Add", {"x", "c"});
  CHECK(last<ChannelAffine>(model.import()).shift == std::vector<float>{4, 4});
}

TEST_CASE("onnx if: what is refused") {
  OnnxModel model = OnnxModel::of_image({4});
  NodeMaker node = model.add_node("If", {"x"});
  node.node.set_name("fork");
  set_branch(node, "then_branch", "Identity", {"x"});
  refuses(model, {"node 'fork' (If)", "condition 'x' is computed from the network's input"});
  OnnxModel lacks = OnnxModel::of_image({4});
  booleans(lacks, "no", {false});
  NodeMaker half = lacks.add_node("If", {"no"});
  set_branch(half, "then_branch", "Identity", {"x"});
  rejects(lacks, {"lacks the branch that its condition takes"});
  OnnxModel number = OnnxModel::of_image({4});
  number.integer("one", 1);
  NodeMaker integer = number.add_node("If", {"one"});
  set_branch(integer, "then_branch", "Identity", {"x"});
  rejects(number, {"condition 'one' must be one truth value"});
  OnnxModel inside = OnnxModel::of_image({4});
  booleans(inside, "yes", {true});
  NodeMaker unknown = inside.add_node("If", {"yes"});
  set_branch(unknown, "then_branch", "LSTM", {"x"});
  refuses(inside, {"node 'inner' (LSTM)", "burin does not know this operator"});
  OnnxModel nobody = OnnxModel::of_image({4});
  booleans(nobody, "yes", {true});
  NodeMaker lost = nobody.add_node("If", {"yes"});
  set_branch(lost, "then_branch", "Identity", {"nowhere"});
  rejects(nobody, {"reads 'nowhere'"});
}
