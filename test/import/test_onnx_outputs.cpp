// Outputs that are given in place of the model's own.
#include "test/import/files.h"
#include "test/import/onnx_model.h"
#include "test/thrown.h"

using namespace burin;
using namespace burin_test;

namespace {

// A convolution, a relu, and what burin does not know.
OnnxModel model_with_unknown_end() {
  OnnxModel model = OnnxModel::of_image({2, 6, 6});
  model.floats("w", {4, 2, 3, 3});
  model.add_node("Conv", {"x", "w"}, "c");
  model.add_node("Relu", {"c"}, "r");
  model.add_node("NonMaxSuppression", {"r", "c"}, "y");
  return model;
}

std::vector<std::string> output_names(const Network& network) {
  std::vector<std::string> names;
  for (const int output : network.outputs) names.push_back(network.tensors[static_cast<std::size_t>(output)].name);
  return names;
}

std::string usage_error(const std::vector<std::string>& outputs) {
  return error_of([&] { model_with_unknown_end().import({.outputs = outputs}); }, ErrorKind::usage);
}

}  // namespace

TEST_CASE("onnx_outputs: the network ends with what is named, in that order, and nothing behind it is read") {
  CHECK(error_of([] { model_with_unknown_end().import(); }, ErrorKind::unsupported).find("NonMaxSuppression") !=
        std::string::npos);
  CHECK(output_names(model_with_unknown_end().import({.outputs = {"r"}})) == std::vector<std::string>{"r"});
  CHECK(output_names(model_with_unknown_end().import({.outputs = {"r", "c"}})) == std::vector<std::string>{"r", "c"});
  CHECK(output_names(model_with_unknown_end().import({.outputs = {"c", "r"}})) == std::vector<std::string>{"c", "r"});
  CHECK(kinds(model_with_unknown_end().import({.outputs = {"c"}})) == "convolution");
}

TEST_CASE("onnx_outputs: an input beside a tensor is copied") {
  CHECK(kinds(model_with_unknown_end().import({.outputs = {"c", "x"}})) == "convolution identity");
}

TEST_CASE("onnx_outputs: names that are none, or given twice, are the user's fault") {
  CHECK_THAT(usage_error({"conv"}), Contains("no tensor of the model is called 'conv'"));
  CHECK_THAT(usage_error({"w"}), Contains("no tensor of the model is called 'w'"));
  CHECK_THAT(usage_error({""}), Contains("no tensor of the model is called ''"));
  CHECK_THAT(usage_error({"c", "r", "c"}), Contains("--outputs names 'c' twice"));
}
