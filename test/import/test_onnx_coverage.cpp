// What of a model is read: every refusal, not only the first.
#include "compiler/import/onnx/onnx_import.h"
#include "test/import/files.h"
#include "test/import/onnx_model.h"
#include "test/thrown.h"

using namespace burin;
using namespace burin_test;

namespace {

Coverage coverage_of(const OnnxModel& model) { return cover_onnx(model.bytes(), "net.onnx", {}); }

const NodeCoverage& entry(const Coverage& coverage, const std::string& node) {
  const auto found = std::ranges::find(coverage.nodes, node, &NodeCoverage::node);
  REQUIRE(found != coverage.nodes.end());
  return *found;
}

}  // namespace

TEST_CASE("onnx coverage: a model that is read whole") {
  OnnxModel model = OnnxModel::of_image({2, 3, 3});
  model.add_node("Relu", {"x"});
  const Coverage coverage = coverage_of(model);
  CHECK(coverage.is_complete());
  REQUIRE(coverage.nodes.size() == 1);
  CHECK(coverage.nodes[0].op == "Relu");
  CHECK(coverage.nodes[0].state == NodeState::read);
}

TEST_CASE("onnx coverage: every refusal, and what is behind it") {
  OnnxModel model = OnnxModel::of_image({2, 3, 3});
  model.output("z");
  model.floats("w", {4, 2, 1});
  model.add_node("Conv", {"x", "w"}, "a").node.set_name("flat");
  model.add_node("Relu", {"a"}, "b");
  model.add_node("LSTM", {"b"});
  model.add_node("FusedConv", {"x"}, "c").node.set_domain("com.microsoft");
  model.add_node("Sigmoid", {"x"}, "d");
  model.add_node("Range", {"d", "d", "d"}, "e");
  model.add_node("Sum", {"c", "d", "e"}, "z");
  const Coverage coverage = coverage_of(model);
  CHECK_FALSE(coverage.is_complete());
  CHECK(entry(coverage, "flat").state == NodeState::refused);
  CHECK(entry(coverage, "flat").reason.starts_with("its weights [4,2,1] make it a 1-D convolution"));
  CHECK(entry(coverage, "b").state == NodeState::not_reached);
  CHECK(entry(coverage, "y").state == NodeState::refused);
  CHECK(entry(coverage, "y").reason == "burin does not know this operator");
  CHECK(entry(coverage, "y").help.find("recurrent") != std::string::npos);
  CHECK(entry(coverage, "c").op == "com.microsoft::FusedConv");
  CHECK(entry(coverage, "c").help.find("ONNX's own operators") != std::string::npos);
  CHECK(entry(coverage, "d").state == NodeState::read);
  CHECK(entry(coverage, "e").state == NodeState::refused);
  CHECK(entry(coverage, "e").reason.find("of constants and sizes alone") != std::string::npos);
  CHECK(entry(coverage, "z").state == NodeState::not_reached);
  CHECK(coverage.cut == std::vector<std::string>{"d"});  // not x, which no operator makes
}

// An output of the model's own comes first, and what has two names is one of them.
TEST_CASE("onnx coverage: where the model can be cut, and what is read then") {
  OnnxModel model = OnnxModel::of_image({2, 6, 6});
  model.output("s");
  model.floats("w", {4, 2, 3, 3});
  model.integers("k", {5});
  model.add_node("Conv", {"x", "w"}, "c");
  model.add_node("Relu", {"c"}, "r");
  model.add_node("Flatten", {"r"}, "f");
  model.add_node("TopK", {"f", "k"});
  model.add_node("Sigmoid", {"c"}, "s");
  model.add_node("Shape", {"r"}, "size");
  model.add_node("NonMaxSuppression", {"r", "size", "c"}, "n");
  model.output("n");
  const Coverage coverage = coverage_of(model);
  CHECK(coverage.cut == std::vector<std::string>{"s", "f", "r", "c"});
  CHECK(model.import({.outputs = coverage.cut}).outputs.size() == 4);
  const std::string error = error_of([&] { model.import(); }, ErrorKind::unsupported);
  CHECK_THAT(error, Contains("TopK") && Contains("nodes are before that, and are read with --outputs s,f,r,c"));
}

TEST_CASE("onnx coverage: names that nobody could type are not offered in an error") {
  OnnxModel model = OnnxModel::of_image({2, 6, 6});
  model.add_node("Relu", {"x"}, "a b");
  model.add_node("TopK", {"a b"});
  CHECK(coverage_of(model).cut == std::vector<std::string>{"a b"});
  CHECK(error_of([&] { model.import(); }, ErrorKind::unsupported).find("--outputs") == std::string::npos);
}

TEST_CASE("onnx coverage: nothing is cut where nothing is read") {
  OnnxModel model = OnnxModel::of_image({2, 6, 6});
  model.add_node("TopK", {"x"});
  CHECK(coverage_of(model).cut.empty());
}

TEST_CASE("onnx coverage: a fault of the network as a whole") {
  OnnxModel model = OnnxModel::of_image({2, 3, 3});
  model.output("z");
  model.add_node("Relu", {"x"});
  model.add_node("Shape", {"x"}, "z");
  const Coverage coverage = coverage_of(model);
  CHECK(coverage.fault.find("output 'z' does not depend on its inputs") != std::string::npos);
  CHECK_FALSE(coverage.is_complete());
}

TEST_CASE("onnx coverage: what is no model is an error all the same") {
  OnnxModel model = OnnxModel::of_image({2, kSymbolic, 3});
  model.add_node("Relu", {"x"});
  expect_error(ErrorKind::usage, {"input 'x'", "--input-shape"}, [&] { coverage_of(model); });
  OnnxModel old = OnnxModel::of_image({2, 3, 3}, 3);
  old.add_node("Relu", {"x"});
  expect_error(ErrorKind::unsupported, {"version 3"}, [&] { coverage_of(old); });
}
